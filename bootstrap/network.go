package bootstrap

import (
	"net/netip"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/internal/config"
	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/inventory"
)

// Address is where the other machines reach one machine, and why.
type Address struct {
	// NodeIP is the node's address; Second is one of the other family, in a dual-stack cluster.
	NodeIP, Second string
	// ExternalIP is a public address: one of an interface, or one that a NAT in front of the machine translates.
	ExternalIP string
	Interface  string
	// Reach is the address by which the others reach it: NodeIP, or ExternalIP where no private network is shared.
	Reach string
	// Reason says why NodeIP, ExternalReason why ExternalIP.
	Reason, ExternalReason string
	mtu                    int
}

// NodeIPs is what k3s takes as node-ip: both addresses of a dual-stack node.
func (a Address) NodeIPs() string {
	if a.Second == "" {
		return a.NodeIP
	}
	return a.NodeIP + "," + a.Second
}

// Network is the pod network that fits the observed addresses.
type Network struct {
	Backend   string
	Reason    string
	Addresses map[string]Address
	// External: nodes reach each other by their external addresses, flannel too.
	External bool
	findings []diag.Finding
}

// terrain is what a network is chosen from.
type terrain struct {
	want     config.Network
	dual     bool // a network of each family is asked for
	machines []inventory.Machine
	seen     map[string]host.Facts
	// nodes are the addresses under which machines are nodes already.
	nodes map[string]inForce
}

// chooseNetwork picks node addresses and the flannel backend from what was
// seen. It is pure. What is in force stays while it is possible: a cluster's
// addresses do not change because a machine could not be looked at, left, or
// has one more interface.
func chooseNetwork(want config.Network, machines []inventory.Machine, seen map[string]host.Facts) Network {
	return terrain{want: want, machines: machines, seen: seen}.choose()
}

// network is the network of a whole cluster, with what its API says of nodes.
func (w wanted) network(s sight) Network {
	t := terrain{
		want: w.config.Spec.Kubernetes.Network, dual: dualStack(w.config.Spec.Kubernetes.Config.Server["cluster-cidr"]),
		machines: w.machines, seen: s.facts, nodes: map[string]inForce{},
	}
	for _, n := range s.cluster.state.Nodes {
		t.nodes[n.Name] = inForce{nodeIP: n.InternalIP, externalIP: n.ExternalIP}
	}
	return t.choose()
}

// chooser is the state of one choice.
type chooser struct {
	terrain
	all    map[string][]candidate // of known machines, of the chosen family
	other  map[string][]candidate // of the other family
	force  map[string]inForce
	shared netip.Prefix // the private network that all machines are in
	public bool         // the others reach a machine by its public address
	net    Network
}

func (t terrain) choose() Network {
	c := chooser{terrain: t, all: map[string][]candidate{}, other: map[string][]candidate{}, force: map[string]inForce{}, net: Network{Addresses: map[string]Address{}}}
	for _, m := range t.machines {
		if f := t.inForceOf(m.Name); f.nodeIP != "" {
			c.force[m.Name] = f
		}
		if f, ok := t.seen[m.Name]; ok && f.Network.Has() {
			c.all[m.Name] = candidates(f.Network.Value, t.want.Interface)
		}
	}
	c.families()
	c.shared, _ = sharedPrefix(c.all, c.absent())
	c.public = c.byPublic()
	for _, m := range t.machines {
		if a, ok := c.address(m); ok {
			c.net.Addresses[m.Name] = a
		}
	}
	c.backend()
	c.findings()
	return c.net
}

// known says whether the machine's interfaces were seen.
func (c *chooser) known(name string) bool { _, ok := c.all[name]; return ok }

// absent are node addresses in force of machines whose interfaces were not seen.
func (c *chooser) absent() []netip.Addr {
	var out []netip.Addr
	for _, m := range c.machines {
		if ip, err := netip.ParseAddr(c.force[m.Name].nodeIP); err == nil && !c.known(m.Name) {
			out = append(out, ip)
		}
	}
	return out
}

// byPublic says whether machines reach each other by public addresses: because
// it is asked for, or because one of several has no other.
func (c *chooser) byPublic() bool {
	switch c.want.UseAddress {
	case "public":
		return true
	case "private":
		return false
	}
	if len(c.machines) < 2 {
		return false
	}
	if c.shared.IsValid() {
		return false
	}
	for _, ip := range c.absent() {
		if !isPrivate(ip) {
			return true
		}
	}
	for _, m := range c.machines {
		cs, known := c.all[m.Name]
		if known && len(cs) > 0 && m.PrivateAddress == "" && !anyPrivate(cs) {
			return true
		}
	}
	return false
}

// address is the address of one machine: what its owner says, what is in force, what fits.
func (c *chooser) address(m inventory.Machine) (Address, bool) {
	cs, known := c.all[m.Name]
	force, running := c.force[m.Name]
	if !known {
		return c.unseen(m, force)
	}
	a, ok := c.pick(m, cs)
	if ok && running && a.NodeIP != force.nodeIP && m.PrivateAddress == "" {
		if held, there := find(cs, force.nodeIP); there && c.stays(held) {
			a = held.as("in force already; a new machine would get " + a.NodeIP)
		} else if !there && c.want.Interface == "" {
			a.Reason += "; " + force.nodeIP + ", which is in force, is on no interface any more"
		}
	}
	if !ok {
		return a, false
	}
	a.ExternalIP, a.ExternalReason = c.external(m, a.NodeIP)
	if a.ExternalIP == "" && a.NodeIP == force.nodeIP {
		a.ExternalIP, a.ExternalReason = force.externalIP, "in force already"
	}
	if c.dual {
		a.Second = second(c.other[m.Name], a)
	}
	c.net.reach(&a, c.public)
	return a, true
}

// unseen is the address of a machine whose interfaces could not be seen: what
// is in force stays in force.
func (c *chooser) unseen(m inventory.Machine, force inForce) (Address, bool) {
	const now = "; the machine's interfaces could not be seen"
	a := Address{
		NodeIP: force.nodeIP, Second: force.second, ExternalIP: force.externalIP, Interface: force.iface,
		Reason: "in force already" + now, ExternalReason: "in force already",
	}
	if a.NodeIP == "" {
		a = Address{NodeIP: m.PrivateAddress, Reason: "privateAddress in gpuctl.yaml" + now}
	}
	c.net.reach(&a, c.public)
	return a, a.NodeIP != ""
}

// reach fills in by which address the others reach a machine.
func (n *Network) reach(a *Address, public bool) {
	a.Reach = a.NodeIP
	if ip, err := netip.ParseAddr(a.NodeIP); public && err == nil && isPrivate(ip) && a.ExternalIP != "" {
		a.Reach = a.ExternalIP
	}
}

// stays says whether an address in force that would not be chosen now is kept:
// it is of the wanted kind, and no machine that is to join waits for it to change.
func (c *chooser) stays(held candidate) bool {
	switch c.want.UseAddress {
	case "private":
		if !isPrivate(held.addr) {
			return false
		}
	case "public":
		if isPrivate(held.addr) {
			return false
		}
	}
	if !c.shared.IsValid() || c.shared.Contains(held.addr) {
		return true
	}
	for _, m := range c.machines {
		if _, running := c.force[m.Name]; !running && c.known(m.Name) {
			return false
		}
	}
	return true
}

// backend chooses flannel's backend. One in force stays unless it would send
// pod traffic over public addresses in clear.
func (c *chooser) backend() {
	open := ""
	for _, m := range c.machines {
		ip, err := netip.ParseAddr(c.net.Addresses[m.Name].Reach)
		if err == nil && !isPrivate(ip) && len(c.machines) > 1 && open == "" {
			open = m.Name
		}
	}
	c.net.External = open != "" && c.public
	before := c.forcedBackend()
	switch {
	case c.want.Backend != "" && c.want.Backend != "auto":
		c.net.Backend, c.net.Reason = c.want.Backend, "backend in gpuctl.yaml"
	case open != "":
		c.net.Backend, c.net.Reason = "wireguard-native", "pod traffic would cross public addresses in clear"
	case before != "" && before != "vxlan":
		c.net.Backend, c.net.Reason = before, "in force already"
	default:
		c.net.Backend, c.net.Reason = "vxlan", "all node addresses are private"
		if len(c.machines) == 1 {
			c.net.Reason = "a machine alone sends no pod traffic to others"
		}
	}
}

func (c *chooser) forcedBackend() string {
	for _, m := range c.machines {
		if m.Role == inventory.Server && c.force[m.Name].backend != "" {
			return c.force[m.Name].backend
		}
	}
	return ""
}
