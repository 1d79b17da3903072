package bootstrap

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/bootstrap/k3s"
	"github.com/gpuctl/gpuctl/charts"
	"github.com/gpuctl/gpuctl/internal/config"
)

// place is one machine of a pattern: its line in gpuctl.yaml and its interfaces.
type place struct {
	yaml   string
	ifaces []host.Interface
	mtu    int
}

// reaching makes a wish and a sight of fresh machines m0 (the server), m1, ...
// that are reached and wired as a pattern says. spec is a line below "spec:".
func reaching(t *testing.T, spec string, places ...place) (wanted, sight) {
	t.Helper()
	set, err := charts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	text := "apiVersion: gpuctl.dev/v1alpha1\nkind: Cluster\nmetadata: {name: test}\nspec:\n" + spec + "  machines:\n"
	for i, p := range places {
		role := "agent"
		if i == 0 {
			role = "server"
		}
		text += fmt.Sprintf("  - {name: m%d, role: %s, %s}\n", i, role, p.yaml)
	}
	c, err := config.Parse([]byte(text), "gpuctl.yaml")
	if err != nil {
		t.Fatal(err)
	}
	w := wanted{config: c, set: set, machines: c.Inventory().Machines, key: "key", owner: "me"}
	s := sight{facts: map[string]host.Facts{}, unreached: map[string]error{}}
	s.cluster.state.NoAPI = "k3s does not run on m0"
	for i, p := range places {
		f, n := fresh(i+1, 0), host.Network{Interfaces: p.ifaces}
		for j := range p.ifaces {
			if p.mtu > 0 {
				p.ifaces[j].MTU = p.mtu
			}
			for _, a := range p.ifaces[j].Addresses {
				if six := strings.Contains(a, ":"); six && n.Default6 == "" {
					n.Default6 = p.ifaces[j].Name
				} else if !six && n.Default4 == "" {
					n.Default4 = p.ifaces[j].Name
				}
			}
		}
		f.Network, f.Sysctls = host.Known(n), host.Known(map[string]string{"fs.inotify.max_user_instances": "8192", "fs.inotify.max_user_watches": "524288"})
		s.facts[w.machines[i].Name] = f
	}
	return w, s
}

// patterns are the ways in which providers hand machines over (section 7.4 of
// what is known of them), and what a user may ask for on top.
func patterns() map[string]struct {
	spec   string
	places []place
} {
	eth := func(addrs ...string) []host.Interface { return []host.Interface{iface("eth0", addrs...)} }
	two := func(a, b string) []host.Interface { return []host.Interface{iface("eth0", a), iface("ens9", b)} }
	network := func(text string) string { return "  kubernetes: {network: {" + text + "}}\n" }
	return map[string]struct {
		spec   string
		places []place
	}{
		"private-and-public-interfaces": {"", []place{{yaml: "host: 203.0.113.1", ifaces: two("203.0.113.1/24", "192.168.7.4/24")}, {yaml: "host: 203.0.113.2", ifaces: two("203.0.113.2/24", "192.168.7.5/24")}}},
		"one-to-one-nat":                {"", []place{{yaml: "host: 203.0.113.1", ifaces: eth("10.0.0.4/24")}, {yaml: "host: 203.0.113.2", ifaces: eth("10.0.0.5/24")}}},
		"public-only":                   {"", []place{{yaml: "host: 203.0.113.1", ifaces: eth("203.0.113.1/24")}, {yaml: "host: 198.51.100.2", ifaces: eth("198.51.100.2/24")}}},
		"public-only-alone":             {"", []place{{yaml: "host: 203.0.113.1", ifaces: eth("203.0.113.1/24")}}},
		"nat-and-public":                {"", []place{{yaml: "host: 203.0.113.1", ifaces: eth("10.0.0.4/24")}, {yaml: "host: 198.51.100.2", ifaces: eth("198.51.100.2/24")}}},
		"no-way-to-each-other":          {"", []place{{yaml: "host: 203.0.113.1", ifaces: eth("203.0.113.1/24")}, {yaml: "host: 10.9.0.4, jump: 198.51.100.9", ifaces: eth("10.9.0.4/24")}}},
		"behind-a-bastion":              {"", []place{{yaml: "host: 10.0.0.4, jump: 203.0.113.9", ifaces: eth("10.0.0.4/24")}, {yaml: "host: 10.0.0.5, jump: 203.0.113.9", ifaces: eth("10.0.0.5/24")}}},
		"subnets-of-one-cloud":          {"", []place{{yaml: "host: 203.0.113.1", ifaces: eth("10.128.0.2/32")}, {yaml: "host: 203.0.113.2", ifaces: eth("10.132.0.2/32")}}},
		"random-ports-of-one-nat":       {"", []place{{yaml: "host: 203.0.113.1, port: 41022", ifaces: eth("172.20.1.4/24")}, {yaml: "host: 203.0.113.1, port: 41877", ifaces: eth("172.20.2.4/24")}}},
		"random-port-alone":             {"", []place{{yaml: "host: 203.0.113.1, port: 41022", ifaces: eth("172.20.1.4/24")}}},
		"forwarded-into-one-lan":        {"", []place{{yaml: "host: 203.0.113.1, port: 2201", ifaces: eth("192.168.1.4/24")}, {yaml: "host: 203.0.113.1, port: 2202", ifaces: eth("192.168.1.5/24")}}},
		"ipv6-only":                     {"", []place{{yaml: `host: "2001:db8::1"`, ifaces: eth("fd12::1/64", "2001:db8::1/64")}, {yaml: `host: "2001:db8::2"`, ifaces: eth("fd12::2/64", "2001:db8::2/64")}}},
		"ipv6-only-public":              {"", []place{{yaml: `host: "2001:db8:1::1"`, ifaces: eth("2001:db8:1::1/64")}, {yaml: `host: "2001:db8:2::1"`, ifaces: eth("2001:db8:2::1/64")}}},
		"both-families":                 {"", []place{{yaml: "host: 203.0.113.1", ifaces: eth("10.0.0.4/24", "2001:db8::4/64")}, {yaml: "host: 203.0.113.2", ifaces: eth("10.0.0.5/24", "2001:db8::5/64")}}},
		"dual-stack-asked-for":          {"  kubernetes: {config: {server: {cluster-cidr: \"10.42.0.0/16,fd00:42::/56\", service-cidr: \"10.43.0.0/16,fd00:43::/112\"}}}\n", []place{{yaml: "host: 203.0.113.1", ifaces: eth("10.0.0.4/24", "fd12::4/64")}, {yaml: "host: 203.0.113.2", ifaces: eth("10.0.0.5/24", "fd12::5/64")}}},
		"families-mixed":                {"", []place{{yaml: "host: 203.0.113.1", ifaces: eth("10.0.0.4/24")}, {yaml: `host: "2001:db8::2"`, ifaces: eth("2001:db8::2/64")}}},
		"small-mtu":                     {"", []place{{yaml: "host: 203.0.113.1", ifaces: eth("10.0.0.4/24"), mtu: 1400}, {yaml: "host: 203.0.113.2", ifaces: eth("10.0.0.5/24"), mtu: 1400}}},
		"mtus-differ":                   {"", []place{{yaml: "host: 203.0.113.1", ifaces: eth("10.0.0.4/24"), mtu: 8900}, {yaml: "host: 203.0.113.2", ifaces: eth("10.0.0.5/24"), mtu: 1450}}},
		"interface-asked-for":           {network("interface: ens9"), []place{{yaml: "host: a.example", ifaces: two("10.0.0.4/24", "172.16.0.4/24")}, {yaml: "host: b.example", ifaces: two("10.0.0.5/24", "172.16.0.5/24")}}},
		"interface-not-there":           {network("interface: ens9"), []place{{yaml: "host: a.example", ifaces: two("10.0.0.4/24", "172.16.0.4/24")}, {yaml: "host: b.example", ifaces: eth("10.0.0.5/24")}}},
		"public-asked-for":              {network("useAddress: public"), []place{{yaml: "host: 203.0.113.1", ifaces: two("203.0.113.1/24", "192.168.7.4/24")}, {yaml: "host: 203.0.113.2", ifaces: eth("192.168.7.5/24")}}},
		"public-asked-for-not-there":    {network("useAddress: public"), []place{{yaml: "host: 10.0.0.4", ifaces: eth("10.0.0.4/24")}, {yaml: "host: 10.0.0.5", ifaces: eth("10.0.0.5/24")}}},
		"private-asked-for-not-there":   {network("useAddress: private"), []place{{yaml: "host: 10.0.0.4", ifaces: eth("10.0.0.4/24")}, {yaml: "host: 203.0.113.5", ifaces: eth("203.0.113.5/24")}}},
		"private-address-not-there":     {"", []place{{yaml: "host: 10.0.0.4", ifaces: eth("10.0.0.4/24")}, {yaml: "host: 10.0.0.5, privateAddress: 10.9.9.9", ifaces: eth("10.0.0.5/24")}}},
		"vxlan-over-public-addresses":   {network("backend: vxlan"), []place{{yaml: "host: 203.0.113.1", ifaces: eth("203.0.113.1/24")}, {yaml: "host: 198.51.100.2", ifaces: eth("198.51.100.2/24")}}},
		"host-gw-between-networks":      {network("backend: host-gw"), []place{{yaml: "host: 10.1.0.4", ifaces: eth("10.1.0.4/24")}, {yaml: "host: 10.2.0.4", ifaces: eth("10.2.0.4/24")}}},
		"host-gw-in-one-network":        {network("backend: host-gw"), []place{{yaml: "host: 10.1.0.4", ifaces: eth("10.1.0.4/24")}, {yaml: "host: 10.1.0.5", ifaces: eth("10.1.0.5/24")}}},
	}
}

// TestNetworkPatterns pins, for each pattern, what is found, what is chosen and
// why, and what k3s is told.
func TestNetworkPatterns(t *testing.T) {
	for name, p := range patterns() {
		t.Run(name, func(t *testing.T) {
			w, s := reaching(t, p.spec, p.places...)
			golden(t, "network/"+name, renderNetwork(w, s))
		})
	}
}

// renderNetwork prints the part of a plan that is about networks.
func renderNetwork(w wanted, s sight) string {
	b := w.contents(s, pure())
	var out strings.Builder
	for _, f := range b.findings {
		fmt.Fprintf(&out, "finding %s %s %s: %s\n", f.Severity, f.Machine, f.Code, f.Evidence)
	}
	for _, m := range w.machines {
		planned := ofScope(b.actions, m.Name)
		fmt.Fprintf(&out, "\n%s: %d actions planned\n", m.Name, len(planned))
		for _, a := range planned {
			if a.ID != k3s.ActionID(m.Name) {
				continue
			}
			for _, c := range a.Chosen {
				fmt.Fprintf(&out, "  * %s\n", c)
			}
			for _, c := range a.Changes {
				if strings.Contains(c, ": ") && !strings.HasPrefix(c, "token") {
					fmt.Fprintf(&out, "  - %s\n", c)
				}
			}
			for _, line := range strings.Split(k3s.Config(w.k3s(m, s, b.network)), "\n") {
				key, _, _ := strings.Cut(line, ":")
				switch strings.TrimSuffix(key, "+") {
				case "node-ip", "node-external-ip", "flannel-iface", "flannel-backend", "flannel-external-ip", "advertise-address", "server", "tls-san":
					fmt.Fprintf(&out, "  > %s\n", line)
				}
				if strings.HasPrefix(line, "  - ") && (strings.Contains(line, ".") || strings.Contains(line, ":")) {
					fmt.Fprintf(&out, "  >   %s\n", strings.TrimSpace(line))
				}
			}
		}
	}
	return out.String()
}
