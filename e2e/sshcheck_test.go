//go:build lab

package e2e_test

import (
	"fmt"
	"strings"
	"testing"

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
