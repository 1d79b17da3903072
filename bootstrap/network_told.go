package bootstrap

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/gpuctl/gpuctl/internal/inventory"
)

// chosen says in a line or two what was chosen of a machine's network, and why:
// what everybody sees with the first plan.
func (n Network) chosen(m inventory.Machine) []string {
	a, ok := n.Addresses[m.Name]
	if !ok || a.NodeIP == "" {
		return nil
	}
	text := "node address " + a.NodeIPs()
	if a.Interface != "" {
		text += " on " + a.Interface
	}
	text += ": " + a.Reason
	if a.ExternalIP != "" && a.ExternalIP != a.NodeIP {
		text += "; outside " + a.ExternalIP + ": " + a.ExternalReason
	}
	out := []string{text}
	if m.Role == inventory.Server {
		out = append(out, "pod network "+n.Backend+": "+n.Reason)
	}
	return out
}

// why says, for people, where what k3s is told of a machine's network comes
// from. more are the names that gpuctl.yaml adds to the API's certificate.
func (n Network) why(m inventory.Machine, more []string) []string {
	a, ok := n.Addresses[m.Name]
	if !ok || a.NodeIP == "" {
		return nil
	}
	out := []string{"node-ip " + a.NodeIPs() + ": " + a.Reason}
	if a.ExternalIP != "" {
		out = append(out, "node-external-ip "+a.ExternalIP+": "+a.ExternalReason)
	}
	if a.Interface != "" {
		text := "flannel-iface " + a.Interface + ": holds " + a.NodeIP
		if a.mtu > 0 {
			text += fmt.Sprintf(", MTU %d", a.mtu)
		}
		out = append(out, text)
	}
	if m.Role == inventory.Server {
		out = append(out, "flannel-backend "+n.Backend+": "+n.Reason)
		if n.External {
			out = append(out, "flannel-external-ip: nodes reach each other by their public addresses")
		}
		for _, s := range sans(m, a, more) {
			out = append(out, "tls-san "+s.name+": "+s.reason)
		}
	}
	return out
}

// san is a name or an address in the API's certificate.
type san struct{ name, reason string }

// sans are the names and addresses the API's certificate must carry beyond k3s's own.
func sans(m inventory.Machine, a Address, more []string) []san {
	set := map[string]bool{}
	var out []san
	add := func(name, reason string) {
		if name != "" && !set[name] {
			set[name] = true
			out = append(out, san{name, reason})
		}
	}
	if ip, err := netip.ParseAddr(m.Host); err == nil && ip.Zone() == "" || err != nil && strings.Contains(m.Host, ".") {
		add(m.Host, "gpuctl reaches the server by it")
	}
	add(a.ExternalIP, a.ExternalReason)
	for _, s := range more {
		add(s, "tlsSANs in gpuctl.yaml")
	}
	return out
}

func (a Address) String() string {
	if a.ExternalIP != "" && a.ExternalIP != a.NodeIP {
		return fmt.Sprintf("%s (external %s)", a.NodeIP, a.ExternalIP)
	}
	return a.NodeIP
}
