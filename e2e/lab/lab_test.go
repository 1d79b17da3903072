//go:build lab

package lab_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/e2e/lab"
	"github.com/gpuctl/gpuctl/e2e/lab/machine"
)

// bring brings a lab of machines up that is gone after the test.
func bring(t *testing.T, id string, specs ...machine.Spec) (*lab.Lab, []*machine.Machine) {
	t.Helper()
	l, err := lab.Up(t.Context(), lab.Options{ID: id, Bare: true, Out: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Down(context.Background()); err != nil {
			t.Error(err)
		}
	})
	removeOld(t, l)
	machines, err := l.Machines(t.Context(), specs...)
	if err != nil {
		t.Fatal(err)
	}
	return l, machines
}

// ssh runs a command by OpenSSH and returns what it printed.
func ssh(t *testing.T, l *lab.Lab, user string, m *machine.Machine, command string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	argv := append(l.SSH(user, m), command)
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return strings.TrimSpace(out.String()), err
}

func expect(t *testing.T, l *lab.Lab, user string, m *machine.Machine, command, want string) {
	t.Helper()
	got, err := ssh(t, l, user, m, command)
	if err != nil || got != want {
		t.Errorf("%s on %s: %s\nprinted %q, %v; want %q", user, m.Name, command, got, err, want)
	}
}

func TestUsersSystemdAndMirror(t *testing.T) {
	l, machines := bring(t, "test-users", machine.Spec{Name: "a"}, machine.Spec{Name: "b", Shell: "/usr/bin/fish"})
	a, b := machines[0], machines[1]
	for _, m := range machines {
		expect(t, l, "root", m, "id -un; systemctl is-system-running --wait; systemctl --failed --plain --no-legend", "root\nrunning")
		expect(t, l, "ubuntu", m, "sudo -n id -un", "root")
		expect(t, l, "ops", m, "echo ops-secret | sudo -S -p '' id -un", "root")
		if out, err := ssh(t, l, "ops", m, "sudo -n true"); err == nil {
			t.Errorf("ops needs no password: %s", out)
		}
	}
	expect(t, l, "ubuntu", b, "status current-command", "fish")
	expect(t, l, "ubuntu", a, "ping -c 1 -W 2 "+b.IP+" >/dev/null && echo reached", "reached")
	expect(t, l, "root", a, fmt.Sprintf(`curl -fsS %[1]s/gpgkey >/usr/share/keyrings/lab.asc &&
		echo 'deb [signed-by=/usr/share/keyrings/lab.asc] %[1]s/stable/deb/amd64 /' >/etc/apt/sources.list.d/lab.list &&
		apt-get -qq update && echo trusted`, l.Sources()["packages"]), "trusted")
	requests, _, err := l.Requests(0)
	if err != nil {
		t.Fatal(err)
	}
	if last := requests[len(requests)-1]; last.From != a.IP || !strings.HasPrefix(last.Path, "/apt/") || last.Bytes == 0 {
		t.Errorf("the last request is logged as %+v", last)
	}
}

func TestRebootKeepsIdentityAndChangesBootID(t *testing.T) {
	l, machines := bring(t, "test-reboot", machine.Spec{Name: "a"})
	a := machines[0]
	const identity = "cat /etc/machine-id /etc/ssh/ssh_host_ed25519_key.pub /etc/kept"
	const boot = "cat /proc/sys/kernel/random/boot_id"
	if _, err := ssh(t, l, "root", a, "echo kept >/etc/kept"); err != nil {
		t.Fatal(err)
	}
	before, err := ssh(t, l, "root", a, identity)
	if err != nil {
		t.Fatal(err)
	}
	for name, reboot := range map[string]func() error{
		"from outside": func() error { return a.Reboot(t.Context()) },
		"by power cut": func() error {
			if err := a.Kill(t.Context()); err != nil {
				return err
			}
			if err := a.Start(t.Context()); err != nil {
				return err
			}
			return a.Wait(t.Context())
		},
		"from inside": func() error {
			old, err := a.Exec(t.Context(), boot+"; systemctl reboot")
			if err != nil {
				return err
			}
			return waitForOther(t.Context(), a, boot, old)
		},
	} {
		id, err := ssh(t, l, "root", a, boot)
		if err != nil {
			t.Fatal(err)
		}
		if err := reboot(); err != nil {
			t.Fatalf("reboot %s: %v", name, err)
		}
		if now, err := ssh(t, l, "root", a, boot); err != nil || now == id {
			t.Errorf("reboot %s: boot id %q, was %q, %v", name, now, id, err)
		}
		expect(t, l, "root", a, identity, before)
	}
}

// waitForOther waits until a command prints something else than old.
func waitForOther(ctx context.Context, m *machine.Machine, command, old string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		if now, err := m.Exec(ctx, command); err == nil && !strings.HasPrefix(old, strings.TrimSpace(now)) {
			return m.Wait(ctx)
		}
	}
	return ctx.Err()
}

func TestReach(t *testing.T) {
	l, machines := bring(t, "test-reach",
		machine.Spec{Name: "jump", Networks: []string{lab.MainNetwork, "private"}},
		machine.Spec{Name: "hidden", Networks: []string{"private"}, Reach: machine.ReachNone, SSHPort: 2222},
		machine.Spec{Name: "ssh-only", Reach: machine.ReachSSH},
		machine.Spec{Name: "container", Unprivileged: true},
		machine.Spec{Name: "no-forwarding", SSHD: []string{"AllowTcpForwarding no"}},
	)
	jump, hidden, sshOnly, container, noForwarding := machines[0], machines[1], machines[2], machines[3], machines[4]
	if open(hidden.IP, "2222") {
		t.Error("the host reaches the machine behind the jump host")
	}
	expect(t, l, "ubuntu", jump, "nc -z -w 5 "+hidden.IP+" 2222 && echo open", "open")
	if out, err := hidden.Exec(t.Context(), "curl -fsS -o /dev/null -w '%{http_code}' "+l.Sources()["images"]+"/v2/"); err != nil || out != "200" {
		t.Errorf("the mirror from a private network: %q, %v", out, err)
	}
	if out, err := sshOnly.Exec(t.Context(), "systemd-run -q nc -lk 6443; until nc -z 127.0.0.1 6443 </dev/null; do :; done; echo up"); err != nil || out != "up\n" {
		t.Fatal(out, err)
	}
	if open(sshOnly.IP, "6443") || !open(sshOnly.IP, "22") {
		t.Error("the host reaches another port than 22, or not even that")
	}
	expect(t, l, "ubuntu", jump, "nc -z -w 5 "+sshOnly.IP+" 6443 && echo open", "open")
	expect(t, l, "root", container, "cat /proc/1/comm; mount -t tmpfs x /mnt 2>/dev/null || echo no", "sshd\nno")
	argv := l.SSH("root", noForwarding)
	forward := append([]string{argv[0], "-W", "127.0.0.1:22"}, argv[1:]...)
	if out, err := exec.CommandContext(t.Context(), forward[0], forward[1:]...).CombinedOutput(); err == nil {
		t.Errorf("forwarding works: %s", out)
	}
}

func open(host, port string) bool {
	conn, err := net.DialTimeout("tcp", net.JoinHostPort(host, port), time.Second)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}
