package bootstrap

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/gpuctl/gpuctl/internal/inventory"
)

// why says, for people, where what k3s is told of a machine's network comes from.
func (n Network) why(m inventory.Machine) []string {
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
	}
	return out
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
	if ip, err := netip.ParseAddr(m.Host); err == nil && ip.Zone() == "" || err != nil && strings.Contains(m.Host, ".") {
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
