package bootstrap

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/inventory"
)

// Codes of networks that a cluster cannot use, or not as it is asked for.
const (
	codeInterface  diag.Code = "interface-missing"
	codeNoAddress  diag.Code = "address-missing"
	codeFamilies   diag.Code = "address-families"
	codeNoCommon   diag.Code = "no-common-network"
	codeNATPorts   diag.Code = "nat-ports-only"
	codeInClear    diag.Code = "overlay-in-clear"
	codeHostGW     diag.Code = "host-gw-routed"
	codeNewAddress diag.Code = "address-changed"
	codeNewPublic  diag.Code = "external-ip-changed"
)

func (c *chooser) raise(code diag.Code, machine, format string, args ...any) {
	c.net.findings = append(c.net.findings, diag.Found(code, machine, fmt.Sprintf(format, args...)))
}

// findings says what stands against the network of each machine.
func (c *chooser) findings() {
	for _, m := range c.machines {
		if !c.known(m.Name) {
			continue
		}
		c.asked(m)
		c.changed(m)
	}
	if len(c.machines) < 2 {
		return
	}
	c.natPorts()
	c.together()
	c.mtus()
}

// asked: what gpuctl.yaml asks for must be there.
func (c *chooser) asked(m inventory.Machine) {
	a, cs := c.net.Addresses[m.Name], c.all[m.Name]
	ip, err := netip.ParseAddr(a.NodeIP)
	only := c.want.Interface
	switch {
	case only != "" && !slices.ContainsFunc(cs, func(x candidate) bool { return x.iface == only }):
		c.raise(codeInterface, m.Name, "no interface %s with an address is up; there are %s", only, c.interfaces(m.Name))
	case m.PrivateAddress != "" && a.Interface == "":
		c.raise(codeNoAddress, m.Name, "privateAddress %s is on none of its interfaces: %s", m.PrivateAddress, c.interfaces(m.Name))
	case c.want.UseAddress == "private" && len(cs) > 0 && !anyPrivate(cs):
		c.raise(codeNoAddress, m.Name, "network.useAddress is private; it has %s", c.interfaces(m.Name))
	case err != nil && len(c.other[m.Name]) > 0:
		c.raise(codeFamilies, m.Name, "the others have addresses of another family; it has %s", c.interfaces(m.Name))
	case err != nil:
		c.raise(codeNoAddress, m.Name, "it has no global address: %s", c.interfaces(m.Name))
	case c.dual && a.Second == "":
		c.raise(codeFamilies, m.Name, "cluster-cidr names networks of both families; it has %s", c.interfaces(m.Name))
	case c.want.UseAddress == "public" && isPrivate(ip) && a.ExternalIP == "":
		c.raise(codeNoAddress, m.Name, "network.useAddress is public; it has %s and is reached by %s", c.interfaces(m.Name), m.Host)
	}
}

// interfaces names those of a machine with their addresses.
func (c *chooser) interfaces(machine string) string {
	var out []string
	for _, i := range c.seen[machine].Network.Value.Interfaces {
		if len(i.Addresses) > 0 && !virtual(i.Name) {
			out = append(out, i.Name+" "+strings.Join(i.Addresses, " "))
		}
	}
	if len(out) == 0 {
		return "no interface with an address"
	}
	return strings.Join(out, ", ")
}

// changed tells that a node gets another address than k3s was told.
func (c *chooser) changed(m inventory.Machine) {
	before, now := c.force[m.Name], c.net.Addresses[m.Name]
	if before.nodeIP != "" && now.NodeIP != "" && before.nodeIP != now.NodeIP {
		c.raise(codeNewAddress, m.Name, "%s was its address; now it is %s: %s", before.nodeIP, now.NodeIP, now.Reason)
	}
	if before.externalIP != "" && now.ExternalIP != "" && before.externalIP != now.ExternalIP {
		c.raise(codeNewPublic, m.Name, "k3s was told %s; now it is %s: %s", before.externalIP, now.ExternalIP, now.ExternalReason)
	}
}

// natPorts finds machines of which one public address forwards single ports:
// SSH to several of them, and nothing that a cluster needs.
func (c *chooser) natPorts() {
	if c.shared.IsValid() {
		return
	}
	for _, m := range c.machines {
		if all := c.behind(m); len(all) > 1 && m.PrivateAddress == "" && !c.kept(m.Name) {
			c.raise(codeNATPorts, m.Name, "%s are all reached by %s, at different ports, and share no private network", strings.Join(all, ", "), m.Host)
		}
	}
}

// behind are the machines that are reached by the same address as m.
func (c *chooser) behind(m inventory.Machine) []string {
	var all []string
	for _, other := range c.machines {
		if m.Jump == "" && other.Jump == "" && strings.EqualFold(other.Host, m.Host) {
			all = append(all, other.Name)
		}
	}
	return all
}

// kept: the machine is a node already, by the address it has now.
func (c *chooser) kept(name string) bool {
	f := c.force[name]
	return f.nodeIP != "" && f.nodeIP == c.net.Addresses[name].NodeIP
}

// together: what several machines need of each other.
func (c *chooser) together() {
	refused := map[string]bool{}
	for _, f := range c.net.findings {
		refused[f.Machine] = refused[f.Machine] || f.Severity == diag.Blocks
	}
	open := false
	for _, m := range c.machines {
		ip, err := netip.ParseAddr(c.net.Addresses[m.Name].Reach)
		if err != nil {
			continue
		}
		open = open || !isPrivate(ip)
		if c.public && isPrivate(ip) && c.known(m.Name) && !refused[m.Name] {
			c.raise(codeNoCommon, m.Name, "the machines share no private network, and it has no public address: %s", c.interfaces(m.Name))
		}
	}
	server := c.machines[0].Name
	for _, m := range c.machines {
		if m.Role == inventory.Server {
			server = m.Name
			break
		}
	}
	switch c.net.Backend {
	case "vxlan", "host-gw":
		if open {
			c.raise(codeInClear, server, "backend %s, and machines reach each other by public addresses", c.net.Backend)
		}
	}
	if c.net.Backend == "host-gw" && !c.shared.IsValid() && len(c.all) == len(c.machines) {
		c.raise(codeHostGW, server, "backend host-gw, and the machines are not in one network")
	}
}

// mtus: flannel takes the MTU of each machine's own interface.
func (c *chooser) mtus() {
	small, large := "", ""
	for _, m := range c.machines {
		mtu := c.net.Addresses[m.Name].mtu
		if mtu == 0 {
			continue
		}
		if small == "" || mtu < c.net.Addresses[small].mtu {
			small = m.Name
		}
		if large == "" || mtu > c.net.Addresses[large].mtu {
			large = m.Name
		}
	}
	if s, l := c.net.Addresses[small], c.net.Addresses[large]; s.mtu < l.mtu {
		c.raise(codeMTU, small, "%s has MTU %d, %s of %s has %d", s.Interface, s.mtu, l.Interface, large, l.mtu)
	}
}
