package bootstrap

import (
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/host"
)

// TestPatternsThatAreFound: what stands against a pattern has its code, and
// nothing else is found; usual ways to be reached are silent. The golden files
// of TestNetworkPatterns hold the evidence.
func TestPatternsThatAreFound(t *testing.T) {
	for name, c := range map[string]struct{ machines, code string }{
		"private-and-public-interfaces": {}, "one-to-one-nat": {}, "public-only": {}, "behind-a-bastion": {},
		"subnets-of-one-cloud": {}, "both-families": {}, "host-gw-in-one-network": {},
		"private-address-not-there":    {"m1", "address-missing"},
		"private-asked-for-not-there":  {"m1", "address-missing"},
		"public-asked-for-not-there":   {"m0 m1", "address-missing"},
		"interface-not-there":          {"m1", "interface-missing"},
		"no-way-to-each-other":         {"m1", "no-common-network"},
		"random-ports-of-one-nat":      {"m0 m1", "nat-ports-only"},
		"vxlan-over-public-addresses":  {"m0", "overlay-in-clear"},
		"host-gw-between-networks":     {"m0", "host-gw-routed"},
		"the servers address has gone": {"m0", "address-changed"},
	} {
		var w wanted
		var s sight
		if p, ok := patterns()[name]; ok {
			w, s = reaching(t, p.spec, p.places...)
		} else {
			w, s = running(t, "", place{yaml: "host: 203.0.113.1", ifaces: []host.Interface{iface("eth0", "10.0.0.4/24")}},
				place{yaml: "host: 203.0.113.2", ifaces: []host.Interface{iface("eth0", "10.0.0.5/24")}})
			blur(&s, "m0", func(f *host.Facts) {
				f.Network = host.Known(host.Network{Default4: "eth0", Interfaces: []host.Interface{iface("eth0", "10.0.0.9/24")}})
			})
		}
		var machines []string
		found := w.contents(s, pure()).findings
		for _, f := range found {
			machines = append(machines, f.Machine)
			if string(f.Code) != c.code {
				t.Errorf("%s: %s at %s, want %q", name, f.Code, f.Machine, c.code)
			}
		}
		if strings.Join(machines, " ") != c.machines {
			t.Errorf("%s: found at %q, want %q", name, machines, c.machines)
		}
	}
}
