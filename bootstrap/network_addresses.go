package bootstrap

import (
	"net/netip"
	"sort"
	"strings"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/internal/inventory"
)

// candidate is one global address of a machine.
type candidate struct {
	addr    netip.Addr
	prefix  netip.Prefix
	iface   string
	mtu     int
	isRoute bool // on the interface of the default route
}

// candidates lists usable addresses: of real interfaces, those of the default route first.
func candidates(n host.Network, only string) []candidate {
	var cs []candidate
	for _, i := range n.Interfaces {
		if !i.Up || virtual(i.Name) || (only != "" && i.Name != only) {
			continue
		}
		for _, text := range i.Addresses {
			p, err := netip.ParsePrefix(text)
			if err != nil || p.Addr().IsLinkLocalUnicast() || p.Addr().IsLoopback() || p.Addr().Is4In6() {
				continue
			}
			route := n.Default4
			if p.Addr().Is6() {
				route = n.Default6
			}
			cs = append(cs, candidate{addr: p.Addr(), prefix: p.Masked(), iface: i.Name, mtu: i.MTU, isRoute: i.Name == route})
		}
	}
	sort.SliceStable(cs, func(a, b int) bool { return cs[a].isRoute && !cs[b].isRoute })
	return cs
}

// virtual says whether an interface belongs to containers or overlays.
func virtual(name string) bool {
	for _, p := range []string{"cni", "flannel", "docker", "br-", "veth", "cali", "tunl", "kube-", "virbr", "lxc", "podman"} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return name == "lo"
}

// families chooses the family that every machine has: IPv4, or IPv6 where one
// machine has nothing else. What is in force decides where it is known.
// Addresses of the other family are put aside.
func (c *chooser) families() {
	v6 := false
	for _, cs := range c.all {
		v6 = v6 || len(cs) > 0 && !anyFamily(cs, false)
	}
	for _, cs := range c.all {
		v6 = v6 && anyFamily(cs, true)
	}
	for _, m := range c.machines {
		if ip, err := netip.ParseAddr(c.force[m.Name].nodeIP); err == nil {
			v6 = ip.Is6()
			break
		}
	}
	for name, cs := range c.all {
		c.all[name], c.other[name] = ofFamily(cs, v6), ofFamily(cs, !v6)
	}
}

func anyFamily(cs []candidate, v6 bool) bool { return len(ofFamily(cs, v6)) > 0 }

func ofFamily(cs []candidate, v6 bool) []candidate {
	var out []candidate
	for _, c := range cs {
		if c.addr.Is6() == v6 {
			out = append(out, c)
		}
	}
	return out
}

func anyPrivate(cs []candidate) bool {
	for _, c := range cs {
		if isPrivate(c.addr) {
			return true
		}
	}
	return false
}

func find(cs []candidate, addr string) (candidate, bool) {
	for _, c := range cs {
		if c.addr.String() == addr {
			return c, true
		}
	}
	return candidate{}, false
}

// second is the address of the other family, on the same interface where it has one.
func second(other []candidate, a Address) string {
	for _, c := range other {
		if c.iface == a.Interface {
			return c.addr.String()
		}
	}
	if len(other) > 0 {
		return other[0].addr.String()
	}
	return ""
}

// pick chooses an address of a machine whose interfaces are known.
func (c *chooser) pick(m inventory.Machine, cs []candidate) (Address, bool) {
	if m.PrivateAddress != "" {
		held, there := find(cs, m.PrivateAddress)
		if !there {
			return Address{NodeIP: m.PrivateAddress, Reason: "privateAddress in gpuctl.yaml, on no interface of the machine"}, true
		}
		return held.as("privateAddress in gpuctl.yaml"), true
	}
	for _, choice := range c.choices(cs) {
		for _, x := range cs {
			if choice.fits(x) {
				return x.as(choice.reason), true
			}
		}
	}
	return Address{}, false
}

func (c candidate) as(reason string) Address {
	return Address{NodeIP: c.addr.String(), Interface: c.iface, mtu: c.mtu, Reason: reason}
}

// choice is one kind of address, and why it is taken.
type choice struct {
	fits   func(candidate) bool
	reason string
}

// choices are the kinds of addresses in the order in which they are taken.
func (c *chooser) choices(cs []candidate) []choice {
	private := func(x candidate) bool { return isPrivate(x.addr) }
	public := func(x candidate) bool { return !isPrivate(x.addr) }
	lone := "the public address; it has no private one"
	if anyPrivate(cs) {
		lone = "the public address: the machines share no private network"
		if c.want.UseAddress == "public" {
			lone = "the public address, as network.useAddress says"
		}
	}
	if c.public {
		return []choice{
			{public, lone},
			{func(x candidate) bool { return private(x) && x.isRoute }, "the private address of the default route, behind a NAT"},
			{private, "the only address, behind a NAT"},
		}
	}
	unshared := "the private address of the default route"
	if len(c.machines) > 1 {
		unshared += "; no one network is shared by all, so theirs must be routed to each other"
	}
	choices := []choice{
		{func(x candidate) bool { return c.shared.IsValid() && c.shared.Contains(x.addr) }, "the private address in " + c.shared.String() + ", which all machines share"},
		{func(x candidate) bool { return private(x) && x.isRoute }, unshared},
		{private, "the only private address"},
	}
	if c.want.UseAddress != "private" {
		choices = append(choices, choice{public, lone})
	}
	return choices
}

// external is the public address of a machine and where it is from: one on an
// interface, else the address it is reached by (1:1 NAT).
func (c *chooser) external(m inventory.Machine, node string) (addr, reason string) {
	for _, x := range c.all[m.Name] {
		if !isPrivate(x.addr) {
			return x.addr.String(), "the public address on " + x.iface
		}
	}
	if len(c.behind(m)) > 1 {
		return "", "" // its ports are forwarded to several machines: it is the address of none
	}
	if a, err := netip.ParseAddr(m.Host); err == nil && !isPrivate(a) && !a.IsLoopback() && a.Zone() == "" && m.Jump == "" && a.String() != node {
		return a.String(), "the address it is reached by, on none of its interfaces (1:1 NAT)"
	}
	return "", ""
}

// sharedPrefix finds the private network in which every machine has an
// address, also those of which only the address in force is known; with several
// the one with the default routes wins, then the smallest.
func sharedPrefix(all map[string][]candidate, absent []netip.Addr) (netip.Prefix, bool) {
	votes, routes := map[netip.Prefix]int{}, map[netip.Prefix]int{}
	for _, cs := range all {
		once := map[netip.Prefix]bool{}
		for _, c := range cs {
			if !isPrivate(c.addr) || once[c.prefix] || c.prefix.Bits() >= c.addr.BitLen()-1 {
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
		for _, a := range absent {
			if p.Contains(a) {
				n++
			}
		}
		if n < len(all)+len(absent) || n < 2 {
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
