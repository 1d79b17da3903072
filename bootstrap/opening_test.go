package bootstrap

import (
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/bootstrap/k3s"
)

// TestOpeningIsForTheClusterAlone: sources are its machines and its pods.
func TestOpeningIsForTheClusterAlone(t *testing.T) {
	eth := func(a string) []host.Interface { return []host.Interface{iface("eth0", a)} }
	private := []place{{yaml: "host: 203.0.113.1", ifaces: eth("10.0.0.4/24")}, {yaml: "host: 203.0.113.2", ifaces: eth("10.0.0.5/24")}}
	six := []place{{yaml: `host: "2001:db8:1::1"`, ifaces: eth("2001:db8:1::1/64")}, {yaml: `host: "2001:db8:2::1"`, ifaces: eth("2001:db8:2::1/64")}}
	for name, tc := range map[string]struct {
		spec          string
		places        []place
		server, agent string
	}{
		"not asked for": {"", private, "", ""},
		"private": {"  kubernetes: {network: {firewall: open}}\n", private,
			"10.0.0.5: 10250/tcp 6443/tcp 8472/udp; 10.42.0.0/16 10.43.0.0/16", "10.0.0.4: 10250/tcp 8472/udp; 10.42.0.0/16 10.43.0.0/16"},
		"public": {"  kubernetes: {network: {firewall: open}}\n", twoPublic(),
			"198.51.100.2: 10250/tcp 51820/udp 6443/tcp; 10.42.0.0/16 10.43.0.0/16", "203.0.113.1: 10250/tcp 51820/udp; 10.42.0.0/16 10.43.0.0/16"},
		"IPv6": {"  kubernetes: {network: {firewall: open}}\n", six,
			"2001:db8:2::1: 10250/tcp 51820/udp 51821/udp 6443/tcp; fd00:42::/56 fd00:43::/112", "2001:db8:1::1: 10250/tcp 51820/udp 51821/udp; fd00:42::/56 fd00:43::/112"},
		"its own pod network": {"  kubernetes: {network: {firewall: open}, config: {server: {cluster-cidr: 10.60.0.0/16}}}\n", private,
			"10.0.0.5: 10250/tcp 6443/tcp 8472/udp; 10.60.0.0/16 10.43.0.0/16", "10.0.0.4: 10250/tcp 8472/udp; 10.60.0.0/16 10.43.0.0/16"},
		"alone": {"  kubernetes: {network: {firewall: open}}\n", private[:1], ": ; 10.42.0.0/16 10.43.0.0/16", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w, s := reaching(t, tc.spec, tc.places...)
			for i, want := range []string{tc.server, tc.agent} {
				got := ""
				if i < len(w.machines) {
					if o := w.opening(w.machines[i], w.network(s)); o != nil {
						got = strings.Join(o.Machines, " ") + ": " + strings.Join(o.Ports, " ") + "; " + strings.Join(o.Pods, " ")
					}
				}
				if got != want {
					t.Errorf("machine %d: %q, want %q", i, got, want)
				}
			}
		})
	}
}

// TestDiskAndFirewallComeBeforeK3s: k3s waits for both, and for neither where none is asked for.
func TestDiskAndFirewallComeBeforeK3s(t *testing.T) {
	w, s := reaching(t, "  kubernetes: {network: {firewall: open}}\n",
		place{yaml: "host: 203.0.113.1, dataDisk: {device: /dev/vdb, format: true}", ifaces: []host.Interface{iface("eth0", "10.0.0.4/24")}})
	blur(&s, "m0", func(f *host.Facts) {
		f.DataDisk, f.Firewall = host.Known(host.DataDisk{Device: "/dev/vdb", SizeMiB: 1 << 20}), host.Known(host.Firewall{UFW: true})
	})
	b := w.contents(s, pure())
	needs, there := "", map[string]bool{}
	for _, a := range b.actions {
		there[a.ID] = true
		if a.ID == k3s.ActionID("m0") {
			needs = strings.Join(a.Needs, " ")
		}
	}
	for _, id := range []string{host.DiskID("m0"), host.FirewallID("m0")} {
		if !there[id] || !strings.Contains(needs, id) {
			t.Errorf("%s is planned: %v; k3s needs %s", id, there[id], needs)
		}
	}
	if !opens(b.actions) {
		t.Error("nobody says that a firewall is about to be opened")
	}
}
