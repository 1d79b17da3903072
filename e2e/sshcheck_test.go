//go:build lab

package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/bootstrap/sshconn"
	"github.com/gpuctl/gpuctl/e2e/lab"
	"github.com/gpuctl/gpuctl/e2e/lab/machine"
	"github.com/gpuctl/gpuctl/e2e/scene"
)

// sshMachine is what a program reads of gpuctl ssh check.
type sshMachine struct {
	Name       string
	OK         bool
	Sudo       string
	Forwarding string
	Hops       []struct {
		Host  string
		Tried []struct{ What, Answer string }
	}
	Tried   []struct{ What, Answer string }
	HostKey *struct{ Fingerprint string }
	Failure *struct{ Kind, Error, Hint string }
}

// sixBehindAHop reaches a machine by an IPv6 address through a jump host, where
// either takes a key that the other does not (kubermatic/kubeone#3153).
func sixBehindAHop(t *testing.T, s *scene.Scene, bastion, hidden *machine.Machine) {
	dir := t.TempDir()
	own := filepath.Join(dir, "own")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", own).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v: %s", err, out)
	}
	public, err := os.ReadFile(own + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	const up = "set -e; sysctl -qw net.ipv6.conf.all.disable_ipv6=0; ip -6 addr add fd00:6:7::%d/64 dev %s nodad\n"
	s.Exec(hidden, fmt.Sprintf(up, 7, "eth0")+"printf '%s' '"+string(public)+"' >/root/.ssh/authorized_keys\nsystemctl restart ssh\n")
	s.Exec(bastion, fmt.Sprintf(up, 1, `"$(ip -o -4 route get `+hidden.IP+` | sed 's/.* dev \([^ ]*\) .*/\1/')"`))
	config := fmt.Sprintf(`Host bastion
  HostName %s
  Port %d
  User ubuntu
  IdentityFile %s
Host six
  HostName fd00:6:7::7
  User root
  ProxyJump bastion
  IdentityFile %s
Host *
  IdentitiesOnly yes
`, bastion.IP, bastion.Port, s.Lab.Key(), own)
	o := options(t)
	o.ConfigFile = filepath.Join(dir, "config")
	if err := os.WriteFile(o.ConfigFile, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := sshconn.Dial(t.Context(), sshconn.Target{Host: "six"}, o)
	if err != nil {
		t.Fatal(err)
	}
	if out := output(t, c, remote.Cmd{Name: "name", Script: "hostname; id -un; echo \"$SSH_CONNECTION\""}); !strings.HasPrefix(out, hidden.Name+"\nroot\nfd00:6:7::1 ") {
		t.Errorf("reached %q", out)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if known, err := os.ReadFile(o.KnownHosts); err != nil || !strings.Contains("\n"+string(known), "\nfd00:6:7::7 ") {
		t.Errorf("known_hosts: %v\n%s", err, known)
	}
}

// TestSSHCheckTellsMachinesApart: against OpenSSH itself, each machine says what
// is wrong with it and nothing else.
func TestSSHCheckTellsMachinesApart(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "sshcheck")
	m := s.Machines(
		machine.Spec{Name: "good"},
		machine.Spec{Name: "closed", Shell: "/usr/bin/fish", SSHD: []string{"AllowTcpForwarding no"}},
		machine.Spec{Name: "bastion", Networks: []string{lab.MainNetwork, "private"}, Reach: machine.ReachSSH},
		machine.Spec{Name: "hidden", Networks: []string{"private"}, Reach: machine.ReachNone},
	)
	jump := fmt.Sprintf("ubuntu@%s:%d", m[2].IP, m[2].Port)
	more := func(k string, v any) map[string]any { return map[string]any{k: v} }
	s.Write(scene.Cluster{Members: []scene.Member{
		{Machine: m[0]}, {Machine: m[1]}, {Machine: m[3], More: more("jump", jump)},
	}})
	s.Agent()
	check := func(code int, names ...string) map[string]sshMachine {
		t.Helper()
		var r struct{ Machines []sshMachine }
		s.Decode(s.Must(code, append([]string{"ssh", "check", "-o", "json"}, names...)...), &r)
		out := map[string]sshMachine{}
		for _, m := range r.Machines {
			out[m.Name] = m
		}
		return out
	}
	all := check(0, m[0].Name, m[1].Name, m[3].Name)
	for name, forwarding := range map[string]string{m[0].Name: "direct", m[1].Name: "relayed", m[3].Name: "direct"} {
		if c := all[name]; !c.OK || c.Sudo != "free" || c.Forwarding != forwarding || c.HostKey == nil {
			t.Errorf("%s: %+v", name, c)
		}
	}
	if hops := all[m[3].Name].Hops; len(hops) != 1 || hops[0].Host != jump || len(hops[0].Tried) < 3 {
		t.Errorf("the way through the jump host: %+v", hops)
	}

	t.Run("IPv6 and a key for each hop", func(t *testing.T) { sixBehindAHop(t, s, m[2], m[3]) })

	failed := check(exitUnreachable, "nobody@"+m[0].IP, "ops@"+m[0].IP, fmt.Sprintf("ubuntu@%s:1", m[0].IP))
	for name, kind := range map[string]string{"nobody@" + m[0].IP: "auth", "ops@" + m[0].IP: "sudo", fmt.Sprintf("ubuntu@%s:1", m[0].IP): "refused"} {
		if c := failed[name]; c.OK || c.Failure == nil || c.Failure.Kind != kind || c.Failure.Hint == "" {
			t.Errorf("%s: %+v", name, c)
		}
	}

	// Another host key is never accepted.
	s.Exec(m[0], "rm -f /etc/ssh/ssh_host_*_key* && ssh-keygen -A >/dev/null && systemctl restart ssh")
	changed := check(exitUnreachable, m[0].Name)[m[0].Name]
	if changed.Failure == nil || changed.Failure.Kind != "hostkey" || !strings.Contains(changed.Failure.Hint, "ssh-keygen") {
		t.Errorf("a changed host key: %+v", changed)
	}
}
