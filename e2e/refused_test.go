//go:build lab

package e2e_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/e2e/lab/machine"
	"github.com/gpuctl/gpuctl/e2e/scene"
)

// password is that of the user ops on every machine of a lab.
const password = "ops-secret"

// TestSudoPassword: the password of ops opens root, and is to be found nowhere.
func TestSudoPassword(t *testing.T) {
	t.Parallel()
	for _, from := range []string{"env", "file"} {
		t.Run(from, func(t *testing.T) {
			s := stage.New(t, "ops-"+from)
			m := s.Machines(machine.Spec{Name: "a"})[0]
			source := map[string]any{"env": "SUDO_PASSWORD"}
			s.Env = []string{"SUDO_PASSWORD=" + password}
			if from == "file" {
				path := filepath.Join(t.TempDir(), "password")
				if err := os.WriteFile(path, []byte(password+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				source, s.Env = map[string]any{"file": path}, nil
			}
			s.Write(scene.Cluster{Members: []scene.Member{{Machine: m}}, User: "ops", SSH: map[string]any{"sudoPassword": source}})

			mentions(t, "a machine seen for the first time", s.Must(exitUnreachable, "apply").Stderr, "--accept-new-host-keys")
			watch(s, m)
			// The refusal has pinned the key; a machine that was never seen is what the flag is for.
			if err := os.Remove(filepath.Join(s.StateDir(), "known_hosts")); err != nil {
				t.Fatal(err)
			}
			r := s.Must(0, "apply", "-v", "--accept-new-host-keys", "-o", "json")
			if strings.Contains(r.Stdout+r.Stderr, password) {
				t.Error("the output holds the password")
			}
			watched(t, s, m)
			nowhere(t, s.StateDir())
			if found := s.Exec(m, "grep -rlaE 'ops-secre[t]' /etc /var/lib/rancher/k3s/server /var/log /root /home /tmp /run/systemd 2>/dev/null || :"); found != "" {
				t.Errorf("files of the machine hold the password: %s", found)
			}
		})
	}
}

// watch looks at the arguments of all processes of a machine again and again.
func watch(s *scene.Scene, m *machine.Machine) {
	s.Exec(m, `cat >/run/watch <<'EOF'
n=0
: >/run/watch-seen
while [ ! -e /run/watch-ends ]; do
  cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' ' ' | grep -a -o '.\{0,80\}ops-secre[t]' >>/run/watch-seen
  n=$((n + 1))
  echo $n >/run/watch-rounds
  sleep 0.1
done
touch /run/watch-ended
EOF
setsid sh /run/watch >/dev/null 2>&1 </dev/null &`)
}

// watched ends watch and fails the test for what it saw.
func watched(t *testing.T, s *scene.Scene, m *machine.Machine) {
	t.Helper()
	if seen := s.Exec(m, "touch /run/watch-ends; while [ ! -e /run/watch-ended ]; do sleep 0.1; done; cat /run/watch-seen"); seen != "" {
		t.Errorf("the password stood in a process's arguments:\n%s", seen)
	}
	if n, err := strconv.Atoi(s.Exec(m, "cat /run/watch-rounds")); err != nil || n < 5 {
		t.Errorf("the processes were looked at %d times, %v", n, err)
	}
}

// nowhere fails the test where a file under dir holds the password.
func nowhere(t *testing.T, dir string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		files++
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(password)) {
			t.Errorf("%s holds the password", path)
		}
		return err
	})
	if err != nil || files == 0 {
		t.Errorf("%d files in %s, %v", files, dir, err)
	}
}

// TestWrongSudoPassword: it is tried once, so that no account gets locked.
func TestWrongSudoPassword(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "wrong")
	m := s.Machines(machine.Spec{Name: "a"})[0]
	s.Env = []string{"SUDO_PASSWORD=not-it"}
	s.Write(scene.Cluster{
		Members: []scene.Member{{Machine: m}}, User: "ops",
		SSH: map[string]any{"sudoPassword": map[string]any{"env": "SUDO_PASSWORD"}},
	})
	r := s.Must(exitUnreachable, "apply", "--accept-new-host-keys")
	mentions(t, "the message", r.Stderr, m.Name, "sudo")
	failures := s.Exec(m, "journalctl -q --no-pager -o cat -t sudo | grep -c 'pam_unix(sudo:auth): authentication failure' || :")
	if failures != "1" {
		t.Errorf("the wrong password was tried %s times, want once", failures)
	}
}

// TestAMereContainer: what cannot be a node is refused before anything changes.
func TestAMereContainer(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "container")
	m := s.Machines(machine.Spec{Name: "a", Unprivileged: true})[0]
	s.Write(scene.Cluster{Members: []scene.Member{{Machine: m}}})
	const files = `find / -xdev \( -path /proc -o -path /sys -o -path /dev \) -prune -o \( -type f -o -type l \) -printf '%p %m %U %s %T@\n' |
		grep -v -E '^/var/log/(lastlog|wtmp|btmp|auth.log) |^/run/(utmp|motd)' | sort`
	before := s.Exec(m, files)
	r := s.Must(exitFindings, "apply", "-o", "json")
	if after := s.Exec(m, files); after != before {
		t.Errorf("the machine was changed:\n%s", added(strings.Split(before, "\n"), strings.Split(after, "\n")))
	}
	var result applied
	s.Decode(r, &result)
	blocks := map[string]bool{}
	for _, f := range result.Findings {
		blocks[f.Code] = f.Severity == "blocks" && f.Machine == m.Name
	}
	if !blocks["container-not-vm"] && !blocks["no-systemd"] {
		t.Errorf("no finding says that this is no machine: %+v", result.Findings)
	}
	if result.Changed != 0 || len(result.Outcomes) != 0 {
		t.Errorf("actions ran: %+v", result.Outcomes)
	}
}
