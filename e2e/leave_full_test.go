//go:build lab && full

package e2e_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/e2e/lab/gpu"
	"github.com/gpuctl/gpuctl/e2e/lab/machine"
	"github.com/gpuctl/gpuctl/e2e/scene"
)

// TestFullLeavingFromAnyLogin: a cluster of users as providers make them, a fish
// user whose sudo wants a password on a server that forbids forwarding, and a root
// without sudo whose shell is tcsh; then everything goes, on one machine with the
// driver that gpuctl brought, on the other without its own.
func TestFullLeavingFromAnyLogin(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "anylogin")
	m := s.Machines(
		machine.Spec{Name: "server", Shell: "/usr/bin/fish", SSHD: []string{"AllowTcpForwarding no"}, Reach: machine.ReachSSH, GPU: scene.H100(1)},
		machine.Spec{Name: "agent", Shell: "/bin/tcsh", SSHPort: 2222, GPU: scenario(t, gpu.NoDriver(1))},
	)
	s.Exec(m[1], "rm -f /usr/bin/sudo")
	s.Env = []string{"OPS_PASSWORD=" + password}
	s.Write(scene.Cluster{
		Members: []scene.Member{{Machine: m[0], GPUs: 1}, {Machine: m[1], GPUs: 1, More: map[string]any{"user": "root"}}},
		User:    "ops", SSH: map[string]any{"sudoPassword": map[string]any{"env": "OPS_PASSWORD"}},
	})
	bare := [][]string{traces(s, m[0]), traces(s, m[1])}
	s.Must(0, "apply", "--yes", "--accept-new-host-keys")
	proven(t, s, map[string]int{m[0].Name: 1, m[1].Name: 1})
	nowhere(t, s.StateDir())
	var again applied
	if s.Decode(s.Must(0, "apply", "-o", "json"), &again); again.Changed != 0 {
		t.Errorf("a second apply changes %+v", again.Outcomes)
	}
	if out := s.Must(0, "status").Stdout; !strings.Contains(out, m[1].Name) || !strings.Contains(out, "GPU Operator: ready") {
		t.Errorf("status through the relay:\n%s", out)
	}

	s.Must(0, "reset", "--driver", "--yes")
	for i, m := range m {
		// The module stays loaded until the next boot; the lab shows a loaded one by mounts.
		now := slices.DeleteFunc(traces(s, m), func(line string) bool {
			return strings.HasPrefix(line, "mount /sys/module ") || strings.HasPrefix(line, "mount /proc/driver ") || strings.HasPrefix(line, "mount /proc/devices ")
		})
		if left := added(bare[i], now); left != "" {
			t.Errorf("%s: a reset leaves:\n%s", m.Name, left)
		}
	}
	packages := "dpkg-query -W -f '${db:Status-Abbrev}|${Package}\\n' 'nvidia*' 'libnvidia*' 'cuda-drivers*' 2>/dev/null | grep '^.i' | grep -vc container || :"
	if out := s.Exec(m[1], packages+"; ls /etc/modprobe.d/gpuctl-nouveau.conf /etc/apt/sources.list.d/gpuctl-nvidia-driver.list 2>/dev/null || :"); out != "0" {
		t.Errorf("the driver that gpuctl installed is not gone: %q", out)
	}
	if err := m[1].Reboot(t.Context()); err != nil {
		t.Fatal(err)
	}
	now := slices.DeleteFunc(traces(s, m[1]), func(line string) bool { return strings.Contains(line, " DOCKER_") }) // its resolver's ports are others now
	if left := added(bare[1], now); left != "" {
		t.Errorf("a reset and a reboot leave:\n%s", left)
	}
	if out := s.Exec(m[0], "nvidia-smi -L | grep -c UUID"); out != "1" {
		t.Errorf("the driver of the machine's image is gone: %q", out)
	}
	if s.Decode(s.Must(0, "reset", "--driver", "--yes", "-o", "json"), &again); again.Changed != 0 {
		t.Errorf("a second reset changes %+v", again.Outcomes)
	}
}
