package bootstrap

import (
	"fmt"
	"net/netip"
	"sort"
	"strings"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/internal/config"
	"github.com/gpuctl/gpuctl/internal/inventory"
)

// Address is where the other machines reach one machine, and why.
type Address struct {
	NodeIP     string
	ExternalIP string
	Interface  string
	Reason     string
}

// Network is the pod network that fits the observed addresses.
type Network struct {
	Backend   string
	Reason    string
	Addresses map[string]Address
}

// candidate is one global IPv4 address of a machine.
type candidate struct {
	addr    netip.Addr
	prefix  netip.Prefix
	iface   string
	isRoute bool // on the interface of the default route
}

// chooseNetwork picks node addresses and the flannel backend from what was seen.
// It is pure; machines whose network is unknown get no address.
func chooseNetwork(want config.Network, machines []inventory.Machine, seen map[string]host.Facts) Network {
	net := Network{Addresses: map[string]Address{}}
	all := map[string][]candidate{}
	for _, m := range machines {
		f, ok := seen[m.Name]
		if ok && f.Network.Has() {
			all[m.Name] = candidates(f.Network.Value, want.Interface)
		}
	}
	shared, isShared := sharedPrefix(all)
	public := want.UseAddress == "public"
	for _, m := range machines {
		if a, ok := chooseAddress(m, all[m.Name], shared, isShared, public); ok {
			net.Addresses[m.Name] = a
		}
	}
	net.Backend, net.Reason = chooseBackend(want, net.Addresses)
	return net
}

func chooseAddress(m inventory.Machine, cs []candidate, shared netip.Prefix, isShared, public bool) (Address, bool) {
	if m.PrivateAddress != "" {
		for _, c := range cs {
			if c.addr.String() == m.PrivateAddress {
				return Address{NodeIP: m.PrivateAddress, Interface: c.iface, ExternalIP: external(m, cs, c), Reason: "privateAddress in gpuctl.yaml"}, true
			}
		}
		return Address{NodeIP: m.PrivateAddress, Reason: "privateAddress in gpuctl.yaml, on no interface of the machine"}, true
	}
	pick := func(ok func(candidate) bool) (candidate, bool) {
		for _, c := range cs {
			if ok(c) {
				return c, true
			}
		}
		return candidate{}, false
	}
	if !public {
		if c, ok := pick(func(c candidate) bool { return isShared && shared.Contains(c.addr) }); ok {
			return Address{NodeIP: c.addr.String(), Interface: c.iface, ExternalIP: external(m, cs, c), Reason: "in " + shared.String() + ", the network that all machines share"}, true
		}
		if c, ok := pick(func(c candidate) bool { return isPrivate(c.addr) && c.isRoute }); ok {
			return Address{NodeIP: c.addr.String(), Interface: c.iface, ExternalIP: external(m, cs, c), Reason: "private address of the default route"}, true
		}
		if c, ok := pick(func(c candidate) bool { return isPrivate(c.addr) }); ok {
			return Address{NodeIP: c.addr.String(), Interface: c.iface, ExternalIP: external(m, cs, c), Reason: "the only private address"}, true
		}
	}
	if c, ok := pick(func(c candidate) bool { return !isPrivate(c.addr) }); ok {
		return Address{NodeIP: c.addr.String(), ExternalIP: c.addr.String(), Interface: c.iface, Reason: "public address, no private one"}, true
	}
	if len(cs) > 0 {
		return Address{NodeIP: cs[0].addr.String(), Interface: cs[0].iface, ExternalIP: external(m, cs, cs[0]), Reason: "the only address"}, true
	}
	return Address{}, false
}

// external is the public address of a machine: one on an interface, else the
// address it is reached by (1:1 NAT).
func external(m inventory.Machine, cs []candidate, node candidate) string {
	for _, c := range cs {
		if !isPrivate(c.addr) && c.addr != node.addr {
			return c.addr.String()
		}
	}
	if a, err := netip.ParseAddr(m.Host); err == nil && !isPrivate(a) && m.Jump == "" && a != node.addr {
		return a.String()
	}
	return ""
}

func chooseBackend(want config.Network, addrs map[string]Address) (backend, reason string) {
	if want.Backend != "" && want.Backend != "auto" {
		return want.Backend, "backend in gpuctl.yaml"
	}
	for _, a := range addrs {
		ip, err := netip.ParseAddr(a.NodeIP)
		if err == nil && !isPrivate(ip) && len(addrs) > 1 {
			return "wireguard-native", "pod traffic would cross public addresses in clear"
		}
	}
	return "vxlan", "all node addresses are private"
}

// candidates lists usable IPv4 addresses, the default route's interface first.
func candidates(n host.Network, only string) []candidate {
	var cs []candidate
	for _, i := range n.Interfaces {
		if !i.Up || virtual(i.Name) || (only != "" && i.Name != only) {
			continue
		}
		for _, text := range i.Addresses {
			p, err := netip.ParsePrefix(text)
			if err != nil || !p.Addr().Is4() || p.Addr().IsLinkLocalUnicast() || p.Addr().IsLoopback() {
				continue
			}
			cs = append(cs, candidate{addr: p.Addr(), prefix: p.Masked(), iface: i.Name, isRoute: i.Name == n.Default4})
		}
	}
	sort.SliceStable(cs, func(a, b int) bool { return cs[a].isRoute && !cs[b].isRoute })
	return cs
}

// virtual says whether an interface belongs to containers or overlays.
func virtual(name string) bool {
	for _, p := range []string{"lo", "cni", "flannel", "docker", "br-", "veth", "cali", "tunl", "kube-", "virbr", "lxc"} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// sharedPrefix finds the private network on which every machine has an address;
// with several the one with the default routes wins, then the smallest.
func sharedPrefix(all map[string][]candidate) (netip.Prefix, bool) {
	votes, routes := map[netip.Prefix]int{}, map[netip.Prefix]int{}
	for _, cs := range all {
		once := map[netip.Prefix]bool{}
		for _, c := range cs {
			if !isPrivate(c.addr) || once[c.prefix] || c.prefix.Bits() >= 31 {
				continue
			}
			once[c.prefix] = true
			votes[c.prefix]++
			if c.isRoute {
				routes[c.prefix]++
			}
		}
	}
	var best netip.Prefix
	found := false
	for p, n := range votes {
		if n < len(all) || len(all) < 2 {
			continue
		}
		if !found || routes[p] > routes[best] || (routes[p] == routes[best] && less(p, best)) {
			best, found = p, true
		}
	}
	return best, found
}

func less(a, b netip.Prefix) bool {
	if a.Bits() != b.Bits() {
		return a.Bits() > b.Bits()
	}
	return a.Addr().Less(b.Addr())
}

// isPrivate counts RFC 1918, the shared space of carrier NAT (RFC 6598, which
// some providers use inside) and unique local addresses.
func isPrivate(a netip.Addr) bool {
	cgn := netip.MustParsePrefix("100.64.0.0/10")
	return a.IsPrivate() || cgn.Contains(a)
}

// sans are the names and addresses the API's certificate must carry beyond k3s's own.
func sans(m inventory.Machine, a Address, more []string) []string {
	set := map[string]bool{}
	var out []string
	add := func(s string) {
		if s != "" && !set[s] {
			set[s] = true
			out = append(out, s)
		}
	}
	if _, err := netip.ParseAddr(m.Host); err == nil || strings.Contains(m.Host, ".") {
		add(m.Host)
	}
	add(a.ExternalIP)
	for _, s := range more {
		add(s)
	}
	return out
}

func (a Address) String() string {
	if a.ExternalIP != "" && a.ExternalIP != a.NodeIP {
		return fmt.Sprintf("%s (external %s)", a.NodeIP, a.ExternalIP)
	}
	return a.NodeIP
}
