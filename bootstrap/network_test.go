package bootstrap

import (
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/internal/config"
	"github.com/gpuctl/gpuctl/internal/inventory"
)

// facts makes a machine with interfaces: "eth0 10.0.0.5/24 mtu"; the first carries the default route.
func facts(ifaces ...host.Interface) host.Facts {
	n := host.Network{Interfaces: ifaces}
	if len(ifaces) > 0 {
		n.Default4 = ifaces[0].Name
	}
	return host.Facts{Network: host.Known(n)}
}

func iface(name string, addrs ...string) host.Interface {
	return host.Interface{Name: name, MTU: 1500, Up: true, Addresses: addrs}
}

func TestChooseNetwork(t *testing.T) {
	m := func(name, addr string) inventory.Machine { return inventory.Machine{Name: name, Host: addr} }
	tests := []struct {
		name     string
		want     config.Network
		machines []inventory.Machine
		seen     map[string]host.Facts
		backend  string
		nodeIP   map[string]string
		external map[string]string
	}{
		{
			name:     "one private network, 1:1 NAT: the public address is only outside",
			machines: []inventory.Machine{m("a", "203.0.113.1"), m("b", "203.0.113.2")},
			seen:     map[string]host.Facts{"a": facts(iface("eth0", "10.1.0.4/24")), "b": facts(iface("eth0", "10.1.0.5/24"))},
			backend:  "vxlan",
			nodeIP:   map[string]string{"a": "10.1.0.4", "b": "10.1.0.5"},
			external: map[string]string{"a": "203.0.113.1", "b": "203.0.113.2"},
		},
		{
			name:     "public default route, private network on a second interface",
			machines: []inventory.Machine{m("a", "203.0.113.1"), m("b", "203.0.113.2")},
			seen: map[string]host.Facts{
				"a": facts(iface("eth0", "203.0.113.1/24"), iface("eth1", "192.168.7.4/24")),
				"b": facts(iface("eth0", "203.0.113.2/24"), iface("ens9", "192.168.7.5/24")),
			},
			backend:  "vxlan",
			nodeIP:   map[string]string{"a": "192.168.7.4", "b": "192.168.7.5"},
			external: map[string]string{"a": "203.0.113.1", "b": "203.0.113.2"},
		},
		{
			name:     "public only: encrypted",
			machines: []inventory.Machine{m("a", "203.0.113.1"), m("b", "198.51.100.2")},
			seen:     map[string]host.Facts{"a": facts(iface("eth0", "203.0.113.1/24")), "b": facts(iface("eth0", "198.51.100.2/24"))},
			backend:  "wireguard-native",
			nodeIP:   map[string]string{"a": "203.0.113.1", "b": "198.51.100.2"},
			external: map[string]string{"a": "203.0.113.1", "b": "198.51.100.2"},
		},
		{
			name:     "one public machine needs no encryption",
			machines: []inventory.Machine{m("a", "203.0.113.1")},
			seen:     map[string]host.Facts{"a": facts(iface("eth0", "203.0.113.1/24"))},
			backend:  "vxlan",
			nodeIP:   map[string]string{"a": "203.0.113.1"},
		},
		{
			name:     "interfaces of containers and overlays are no addresses of the machine",
			machines: []inventory.Machine{m("a", "10.0.0.9")},
			seen:     map[string]host.Facts{"a": facts(iface("docker0", "172.17.0.1/16"), iface("cni0", "10.42.0.1/24"), iface("eth0", "10.0.0.9/24"))},
			backend:  "vxlan",
			nodeIP:   map[string]string{"a": "10.0.0.9"},
		},
		{
			name:     "the owner's word counts",
			want:     config.Network{Backend: "host-gw", Interface: "eth1"},
			machines: []inventory.Machine{{Name: "a", Host: "x", PrivateAddress: "172.16.0.3"}, m("b", "y")},
			seen: map[string]host.Facts{
				"a": facts(iface("eth0", "10.0.0.3/24"), iface("eth1", "172.16.0.3/24")),
				"b": facts(iface("eth0", "10.0.0.4/24"), iface("eth1", "172.16.0.4/24")),
			},
			backend: "host-gw",
			nodeIP:  map[string]string{"a": "172.16.0.3", "b": "172.16.0.4"},
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got := chooseNetwork(tc.want, tc.machines, tc.seen)
			if got.Backend != tc.backend {
				t.Errorf("backend %s (%s), want %s", got.Backend, got.Reason, tc.backend)
			}
			for name, ip := range tc.nodeIP {
				if a := got.Addresses[name]; a.NodeIP != ip || a.Reason == "" {
					t.Errorf("%s: node address %q (%s), want %s", name, a.NodeIP, a.Reason, ip)
				}
			}
			for name, ip := range tc.external {
				if a := got.Addresses[name]; a.ExternalIP != ip {
					t.Errorf("%s: external %q, want %s", name, a.ExternalIP, ip)
				}
			}
		})
	}
}

func TestUnknownNetworkGivesNoAddress(t *testing.T) {
	got := chooseNetwork(config.Network{}, []inventory.Machine{{Name: "a", Host: "a"}}, map[string]host.Facts{"a": {}})
	if a, ok := got.Addresses["a"]; ok {
		t.Errorf("address %v out of nothing", a)
	}
}
