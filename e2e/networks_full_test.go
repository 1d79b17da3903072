//go:build lab && full

package e2e_test

import (
	"fmt"
	"net"
	"strconv"
	"testing"

	"github.com/gpuctl/gpuctl/e2e/lab/machine"
	"github.com/gpuctl/gpuctl/e2e/lab/wan"
	"github.com/gpuctl/gpuctl/e2e/scene"
)

// TestFullNetworksOfProviders: what is planned on machines as providers hand them
// over, where the lab can show them: ports of one address that lead to several
// machines, public addresses alone, an interface with a small MTU. Nothing is
// installed: the stand-in for k3s knows no WireGuard.
func TestFullNetworksOfProviders(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "provider")
	m := s.Machines(
		machine.Spec{Name: "a", Networks: []string{s.Name + "-a"}}, machine.Spec{Name: "b", Networks: []string{s.Name + "-b"}},
		machine.Spec{Name: "c"}, machine.Spec{Name: "d"},
	)
	t.Run("random ports of one address", func(t *testing.T) {
		a, b := forwarded(t, m[0]), forwarded(t, m[1])
		s.Write(scene.Cluster{Members: []scene.Member{a, b}})
		r := s.Must(exitFindings, "apply", "--yes")
		mentions(t, "an apply", r.Stdout+r.Stderr, "nat-ports-only", "are all reached by 127.0.0.1, at different ports, and share no private network")
		for _, m := range m[:2] {
			if left := s.Exec(m, "ls -d /etc/rancher /var/lib/rancher /usr/local/bin/*k3s* /etc/modules-load.d/gpuctl* 2>/dev/null || :"); left != "" {
				t.Errorf("%s was changed: %s", m.Name, left)
			}
		}
		s.Write(scene.Cluster{Members: []scene.Member{a}})
		mentions(t, "a plan of one alone", s.Must(0, "plan").Stdout, "node address "+m[0].IP+" on eth0: ", "pod network vxlan: a machine alone sends no pod traffic to others")
	})
	t.Run("public addresses alone", func(t *testing.T) {
		for i, m := range m[2:] {
			// The kernel here may lack WireGuard; those of providers have it.
			s.Exec(m, fmt.Sprintf(`ip addr add 198.51.100.%d/24 dev eth0
echo kernel/drivers/net/wireguard/wireguard.ko >>"/lib/modules/$(uname -r)/modules.builtin"
depmod`, 10+i))
		}
		public := func(backend string) scene.Cluster {
			return scene.Cluster{
				Members: []scene.Member{{Machine: m[2]}, {Machine: m[3]}},
				Spec:    map[string]any{"kubernetes": map[string]any{"network": map[string]any{"useAddress": "public", "backend": backend}}},
			}
		}
		s.Write(public("auto"))
		mentions(t, "a plan", s.Must(0, "plan", "-v").Stdout, "node address 198.51.100.10 on eth0: ", "node address 198.51.100.11 on eth0: ",
			"pod network wireguard-native: pod traffic would cross public addresses in clear", "flannel-external-ip: ")
		s.Write(public("vxlan"))
		r := s.Must(0, "plan")
		mentions(t, "VXLAN because somebody wants it", r.Stdout+r.Stderr, "overlay-in-clear", "pod network vxlan: backend in gpuctl.yaml")
	})
	t.Run("a small MTU", func(t *testing.T) {
		s.Exec(m[3], "ip addr del 198.51.100.11/24 dev eth0; ip link set dev eth0 mtu 1400")
		s.Exec(m[2], "ip addr del 198.51.100.10/24 dev eth0")
		s.Write(scene.Cluster{Members: []scene.Member{{Machine: m[2]}, {Machine: m[3]}}})
		r := s.Must(0, "check", "--no-pairs")
		mentions(t, "a check", r.Stdout+r.Stderr, "mtu-mismatch", "eth0 has MTU 1400, eth0 of "+m[2].Name+" has 1500")
	})
}

// forwarded is a machine as a provider with one address for all shows it: by a
// port of that address which leads to its SSH.
func forwarded(t *testing.T, m *machine.Machine) scene.Member {
	t.Helper()
	line, err := wan.Open(t.Context(), net.JoinHostPort(m.IP, strconv.Itoa(m.Port)), 0)
	if err != nil {
		t.Fatal(err)
	}
	return scene.Member{Machine: m, GPUs: -1, More: map[string]any{"host": "127.0.0.1", "port": line.Addr().Port}}
}
