package bootstrap

import (
	"slices"
	"strconv"
	"strings"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/internal/inventory"
)

func diskOf(m inventory.Machine) *host.Disk {
	if m.DataDisk == nil {
		return nil
	}
	return &host.Disk{Device: m.DataDisk.Device, Mount: m.DataDisk.Mount, Format: m.DataDisk.Format}
}

func mountOf(m inventory.Machine) string {
	if m.DataDisk == nil {
		return ""
	}
	return m.DataDisk.Mount
}

// opening is what a machine's own firewall shall let in: the other machines to
// the ports that k3s needs, pods and services everywhere. It is nil where
// gpuctl.yaml does not ask for it. Ports: https://docs.k3s.io/installation/requirements.
func (w wanted) opening(m inventory.Machine, net Network) *host.Open {
	if w.config.Spec.Kubernetes.Network.Firewall != "open" {
		return nil
	}
	o := host.Open{Pods: w.podNetworks(net.Addresses[m.Name])}
	ports := map[string]bool{}
	for _, other := range w.machines {
		if other.Name == m.Name {
			continue
		}
		a := net.Addresses[other.Name]
		for _, address := range []string{a.NodeIP, a.Second, a.Reach} {
			if address != "" && !slices.Contains(o.Machines, address) {
				o.Machines = append(o.Machines, address)
			}
		}
		for _, port := range portsFor(other, m) {
			ports[strconv.Itoa(port)+"/tcp"] = true
		}
		for _, port := range overlayPorts(net.Backend, a) {
			ports[strconv.Itoa(port)+"/udp"] = true
		}
	}
	for port := range ports {
		o.Ports = append(o.Ports, port)
	}
	slices.Sort(o.Machines)
	slices.Sort(o.Ports)
	return &o
}

// overlayPorts are flannel's; wireguard has one for each family.
func overlayPorts(backend string, a Address) []int {
	port := overlayPort(backend)
	switch {
	case port == 0:
		return nil
	case backend == "wireguard-native" && (a.Second != "" || strings.Contains(a.NodeIP, ":")):
		return []int{port, port + 1}
	}
	return []int{port}
}

// podNetworks are the networks of pods and services: the user's, else k3s's own.
func (w wanted) podNetworks(a Address) []string {
	var out []string
	for _, key := range []string{"cluster-cidr", "service-cidr"} {
		given := texts(w.config.Spec.Kubernetes.Config.Server[key])
		four, six := "10.42.0.0/16", "fd00:42::/56"
		if key == "service-cidr" {
			four, six = "10.43.0.0/16", "fd00:43::/112"
		}
		switch {
		case len(given) > 0:
			out = append(out, given...)
		case strings.Contains(a.NodeIP, ":"):
			out = append(out, six)
		default:
			out = append(out, four)
		}
	}
	return out
}

// opens says whether a firewall is about to be opened: what it blocks until
// then is no finding.
func opens(actions []plan.Action) bool {
	return slices.ContainsFunc(actions, func(a plan.Action) bool { return a.ID == host.FirewallID(a.Machine) })
}
