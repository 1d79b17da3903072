package bootstrap

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/bootstrap/k3s"
	"github.com/gpuctl/gpuctl/internal/config"
	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/inventory"
	"github.com/gpuctl/gpuctl/internal/kube"
)

// running is a cluster of a pattern on which everything is as wanted.
func running(t *testing.T, spec string, places ...place) (wanted, sight) {
	t.Helper()
	w, s := reaching(t, spec, places...)
	s.cluster.state = kube.State{}
	for _, m := range w.machines {
		s.cluster.state.Nodes = append(s.cluster.state.Nodes, kube.Node{Name: m.Name, Ready: true})
	}
	fresh := maps.Clone(s.facts)
	for _, m := range w.machines {
		s.facts[m.Name] = settled(w, m, sight{facts: fresh})
	}
	if b := w.contents(s, pure()); len(b.actions) > 0 {
		t.Fatalf("the cluster is not settled:\n%s", render(b))
	}
	return w, s
}

func twoPublic() []place {
	return []place{
		{yaml: "host: 203.0.113.1", ifaces: []host.Interface{iface("eth0", "203.0.113.1/24")}},
		{yaml: "host: 198.51.100.2", ifaces: []host.Interface{iface("eth0", "198.51.100.2/24")}},
	}
}

func twoNetworks() []place {
	return []place{
		{yaml: "host: 203.0.113.1", ifaces: []host.Interface{iface("eth0", "203.0.113.1/24", "10.9.1.4/24"), iface("ens9", "192.168.7.4/24")}},
		{yaml: "host: 203.0.113.2", ifaces: []host.Interface{iface("eth0", "203.0.113.2/24", "10.9.2.4/24"), iface("ens9", "192.168.7.5/24")}},
	}
}

// TestWhatIsUnknownChangesNothing: a section of a probe that times out must
// not change what any machine is to be.
func TestWhatIsUnknownChangesNothing(t *testing.T) {
	for _, tc := range []struct {
		name   string
		places []place
		lose   func(w wanted, s *sight)
	}{
		{"the network of the agent", twoNetworks(), func(_ wanted, s *sight) {
			blur(s, "m1", func(f *host.Facts) { f.Network = host.Unknown[host.Network]("timeout") })
		}},
		{"the network of the server", twoNetworks(), func(_ wanted, s *sight) {
			blur(s, "m0", func(f *host.Facts) { f.Network = host.Unknown[host.Network]("timeout") })
		}},
		{"both networks", twoPublic(), func(_ wanted, s *sight) {
			for _, name := range []string{"m0", "m1"} {
				blur(s, name, func(f *host.Facts) { f.Network = host.Unknown[host.Network]("timeout") })
			}
		}},
		{"a machine with a public address alone is not reached", twoPublic(), func(_ wanted, s *sight) {
			delete(s.facts, "m1")
			s.unreached["m1"] = errors.New("no route to host")
			s.cluster.state.Nodes[1].InternalIP = "198.51.100.2"
		}},
		{"a machine is not reached, and the API says nothing of its address", twoPublic(), func(_ wanted, s *sight) { delete(s.facts, "m1") }},
		{"a machine of two networks is not reached", twoNetworks(), func(_ wanted, s *sight) { delete(s.facts, "m1") }},
		{"the sysctls", twoNetworks(), func(_ wanted, s *sight) {
			blur(s, "m1", func(f *host.Facts) {
				f.Sysctls = host.Unknown[map[string]string]("timeout")
				f.Files.Value[host.PathSysctl] = host.File{Mode: "644", Kind: "file", Hash: "of more than gpuctl asks for"}
			})
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w, s := running(t, "", tc.places...)
			tc.lose(w, &s)
			b := w.contents(s, pure())
			for _, a := range b.actions {
				t.Errorf("%s is pending: %s", a.ID, a.Reason)
			}
			if diag.AnyBlocks(b.findings) {
				t.Errorf("blocked:\n%s", render(b))
			}
		})
	}
}

func blur(s *sight, name string, change func(*host.Facts)) {
	f := s.facts[name]
	change(&f)
	s.facts[name] = f
}

// TestUncountedGPUsKeepTheTaint: without the PCI section nobody knows whether
// the machine has GPUs, and its configuration stays as it is.
func TestUncountedGPUsKeepTheTaint(t *testing.T) {
	w := clusterOf(t, "server-1", "gpu-1")
	s := settledSight(t, w, 0, 2)
	blur(&s, "gpu-1", func(f *host.Facts) { f.PCI = host.Unknown[[]host.PCIDevice]("timeout") })
	for _, a := range w.contents(s, pure()).actions {
		if a.ID == k3s.ActionID("gpu-1") {
			t.Errorf("%s is pending: %s", a.ID, a.Reason)
		}
	}
}

// TestAddressesInForce: what keeps an address and what changes it.
func TestAddressesInForce(t *testing.T) {
	more := host.Network{Default4: "eth0", Interfaces: []host.Interface{iface("eth0", "10.0.0.1/24"), iface("ens9", "10.7.0.1/16")}}
	own := func(m map[string]string) host.Fact[host.K3s] { return host.Known(host.K3s{InForce: m}) }
	for _, tc := range []struct {
		name    string
		want    config.Network
		machine inventory.Machine
		network host.Network
		k3s     host.Fact[host.K3s]
		other   host.Facts
		nodeIP  string
		reason  string
		backend string
	}{
		{"kept: another one would be chosen now", config.Network{}, inventory.Machine{}, more, own(map[string]string{"node-ip": "10.7.0.1"}), host.Facts{}, "10.7.0.1", "in force already", "vxlan"},
		{"changed: it is on no interface any more", config.Network{}, inventory.Machine{}, more, own(map[string]string{"node-ip": "10.0.0.77"}), host.Facts{}, "10.0.0.1", "10.0.0.77, which is in force, is on no interface", "vxlan"},
		{"changed: the owner says so", config.Network{}, inventory.Machine{PrivateAddress: "10.0.0.1"}, more, own(map[string]string{"node-ip": "10.7.0.1"}), host.Facts{}, "10.0.0.1", "privateAddress", "vxlan"},
		{"changed: another interface is asked for", config.Network{Interface: "ens9"}, inventory.Machine{}, more, own(map[string]string{"node-ip": "10.0.0.1"}), host.Facts{}, "10.7.0.1", "the only private address", "vxlan"},
		{"changed: the one that joins is in the other network", config.Network{}, inventory.Machine{}, more, own(map[string]string{"node-ip": "10.0.0.1"}), facts(iface("eth0", "10.7.0.2/16")), "10.7.0.1", "which all machines share", "vxlan"},
		{"kept: the backend", config.Network{}, inventory.Machine{}, more, own(map[string]string{"node-ip": "10.0.0.1", "flannel-backend": "wireguard-native"}), host.Facts{}, "10.0.0.1", "", "wireguard-native"},
		{"edited by hand: chosen anew", config.Network{}, inventory.Machine{}, more, own(map[string]string{"node-ip": "$(hostname -I)"}), host.Facts{}, "10.0.0.1", "", "vxlan"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.machine.Name, tc.machine.Role = "a", inventory.Server
			machines, seen := []inventory.Machine{tc.machine}, map[string]host.Facts{"a": {Network: host.Known(tc.network), K3s: tc.k3s}}
			if tc.other.Network.Has() {
				machines, seen["b"] = append(machines, inventory.Machine{Name: "b", Role: inventory.Agent}), tc.other
			}
			got := chooseNetwork(tc.want, machines, seen)
			if a := got.Addresses["a"]; a.NodeIP != tc.nodeIP || !strings.Contains(a.Reason, tc.reason) || got.Backend != tc.backend {
				t.Errorf("%s (%s), %s; want %s (%s), %s", a.NodeIP, a.Reason, got.Backend, tc.nodeIP, tc.reason, tc.backend)
			}
		})
	}
}

// TestANewPublicAddressIsTold: the provider gave another one, which gpuctl.yaml
// names now; behind a NAT the machine itself does not know it.
func TestANewPublicAddressIsTold(t *testing.T) {
	places := func(host1 string) []place {
		return []place{{yaml: "host: " + host1, ifaces: []host.Interface{iface("eth0", "10.0.0.4/24")}}, {yaml: "host: 203.0.113.2", ifaces: []host.Interface{iface("eth0", "10.0.0.5/24")}}}
	}
	w, s := running(t, "", places("203.0.113.1")...)
	for _, f := range w.contents(s, pure()).findings {
		t.Errorf("nothing changed: %s: %s", f.Code, f.Evidence)
	}
	moved, _ := reaching(t, "", places("203.0.113.77")...)
	b := moved.contents(s, pure())
	if len(b.findings) != 1 || b.findings[0].Code != "external-ip-changed" || b.findings[0].Machine != "m0" {
		t.Errorf("%+v", b.findings)
	}
	if len(b.actions) != 1 || b.actions[0].ID != k3s.ActionID("m0") || strings.Contains(strings.Join(b.actions[0].Changes, " "), "etcd") {
		t.Errorf("the server's configuration alone changes:\n%s", render(b))
	}
}

// TestANewPrivateAddressReachesEveryMachine: after a stop and a start the
// server has another private address. The server's configuration, its etcd and
// what its agents are told change, and nothing else.
func TestANewPrivateAddressReachesEveryMachine(t *testing.T) {
	w, s := running(t, "", place{yaml: "host: 203.0.113.1", ifaces: []host.Interface{iface("eth0", "10.0.0.4/24")}},
		place{yaml: "host: 203.0.113.2", ifaces: []host.Interface{iface("eth0", "10.0.0.5/24")}})
	blur(&s, "m0", func(f *host.Facts) {
		f.Network = host.Known(host.Network{Default4: "eth0", Interfaces: []host.Interface{iface("eth0", "10.0.0.9/24")}})
	})
	golden(t, "network/address-of-the-server-changed", render(w.contents(s, pure())))
	w.config.Spec.Kubernetes.Datastore = "sqlite"
	for _, a := range w.contents(s, pure()).actions {
		if strings.Contains(strings.Join(a.Changes, " "), "etcd") {
			t.Errorf("%s speaks of etcd, and there is none: %v", a.ID, a.Changes)
		}
	}
}
