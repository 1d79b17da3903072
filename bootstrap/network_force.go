package bootstrap

import (
	"fmt"
	"net/netip"
	"strings"
)

// inForce is the network as a machine's k3s was told before, or as its Node
// object shows it. Zero where the machine is no member yet.
type inForce struct {
	nodeIP, second, externalIP, iface, backend string
}

// inForceOf reads gpuctl's own configuration file on the machine, which the
// probe brings back in part; where that could not be seen, the Node object.
func (t terrain) inForceOf(machine string) inForce {
	own := t.seen[machine].K3s.Value.InForce
	if own["node-ip"] == "" {
		return t.nodes[machine]
	}
	f := inForce{nodeIP: own["node-ip"], externalIP: own["node-external-ip"], iface: own["flannel-iface"], backend: own["flannel-backend"]}
	f.nodeIP, f.second, _ = strings.Cut(f.nodeIP, ",")
	if _, err := netip.ParseAddr(f.nodeIP); err != nil {
		return t.nodes[machine] // edited by hand
	}
	return f
}

// dualStack says whether a cluster-cidr of the user's names a network of each family.
func dualStack(cidr any) bool {
	four, six := false, false
	for _, text := range texts(cidr) {
		p, err := netip.ParsePrefix(text)
		four, six = four || err == nil && p.Addr().Is4(), six || err == nil && p.Addr().Is6()
	}
	return four && six
}

// texts reads a value that k3s takes as a list or as text with commas.
func texts(value any) []string {
	var out []string
	add := func(text string) {
		for _, t := range strings.Split(text, ",") {
			if t = strings.TrimSpace(t); t != "" {
				out = append(out, t)
			}
		}
	}
	switch v := value.(type) {
	case string:
		add(v)
	case []any:
		for _, item := range v {
			add(fmt.Sprint(item))
		}
	}
	return out
}
