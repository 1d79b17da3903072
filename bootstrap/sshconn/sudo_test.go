//go:build unix

package sshconn_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/bootstrap/sshconn"
	"github.com/gpuctl/gpuctl/bootstrap/sshconn/sshtest"
)

// sudoStandIn behaves as sudo does on its command line, for one kind of
// machine: free asks nothing; password wants "right horse" on stdin, three
// tries; forbidden takes the password and lets nobody in. Synthetic; its words
// are those that sudo 1.9 prints.
const sudoStandIn = `#!/bin/sh
kind=KIND
log=LOG
n= S=
while :; do
	case $1 in
	-n) n=1; shift ;;
	-S) S=1; shift ;;
	-p) shift 2 ;;
	--) shift; break ;;
	*) break ;;
	esac
done
if [ $kind != free ]; then
	[ -z "$n" ] || { echo "sudo: a password is required" >&2; exit 1; }
	[ -n "$S" ] || { echo "sudo: a terminal is required to read the password" >&2; exit 1; }
	tries=0
	while :; do
		IFS= read -r given || { echo "sudo: no password was provided" >&2; exit 1; }
		echo "$given" >>"$log"
		[ "$given" != "right horse" ] || break
		tries=$((tries + 1))
		[ $tries -lt 3 ] || { echo "sudo: 3 incorrect password attempts" >&2; exit 1; }
		echo "Sorry, try again." >&2
	done
	[ $kind != forbidden ] || { echo "ubuntu is not in the sudoers file." >&2; exit 1; }
fi
echo "sudo: unable to resolve host gpu-1: Name or service not known" >&2
export STAND_IN_ROOT=1
exec "$@"
`

// idStandIn says that the user is 1000 until sudo has run.
const idStandIn = `#!/bin/sh
if [ "$*" = -u ] && [ -z "$STAND_IN_ROOT" ]; then echo 1000; else exec /usr/bin/id "$@"; fi
`

// standIns makes a folder with sudo and id of one kind of machine; on kind
// root there is neither.
func standIns(t *testing.T, kind string) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if kind == "root" {
		return dir
	}
	write("id", idStandIn)
	write("sudo", strings.NewReplacer("KIND", kind, "LOG", passwordLog(dir)).Replace(sudoStandIn))
	return dir
}

// passwordLog is where the stand-in of sudo notes each password it was given.
func passwordLog(dir string) string { return filepath.Join(dir, "log") }

// machine is a connection to a machine of one kind.
func machine(t *testing.T, kind, password string) (c *sshconn.Conn, log string, asked *int) {
	t.Helper()
	dir := standIns(t, kind)
	s := sshtest.Start(t, sshtest.Options{Path: dir})
	o := options(t)
	asked = new(int)
	if password != "-" {
		o.SudoPassword = func(_ context.Context, m sshconn.Info) (string, error) {
			*asked++
			if !m.FirstSeen || m.User != "ubuntu" {
				t.Errorf("asked for %+v", m)
			}
			return password, nil
		}
	}
	return dial(t, target(t, s), o), passwordLog(dir), asked
}

func passwordsTried(t *testing.T, log string) []string {
	t.Helper()
	text, err := os.ReadFile(log)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// asRoot returns a command that fails unless it runs as root, and prints its input.
func asRoot() remote.Cmd {
	return remote.Cmd{Name: "as root", Script: `[ "$(id -u)" = 0 ] && cat`, Sudo: true}
}

func TestSudoWithPassword(t *testing.T) {
	c, log, asked := machine(t, "password", "right horse")
	for i := range 3 {
		cmd := asRoot()
		cmd.Stdin = strings.NewReader("payload\n")
		res, err := c.Run(t.Context(), cmd)
		if err != nil || string(res.Stdout) != "payload\n" || len(res.Stderr) != 0 {
			t.Fatalf("command %d: %q %q %v", i, res.Stdout, res.Stderr, err)
		}
	}
	// Once by itself, then once for each command; never a line of the script.
	if got := passwordsTried(t, log); !slices.Equal(got, []string{"right horse", "right horse", "right horse", "right horse"}) {
		t.Errorf("sudo was given %q", got)
	}
	if *asked != 1 {
		t.Errorf("asked %d times", *asked)
	}
}

func TestSudoWrongPasswordOnce(t *testing.T) {
	c, log, asked := machine(t, "password", "wrong")
	for range 3 {
		_, err := c.Run(t.Context(), asRoot())
		sudoError(t, err, remote.SudoWrongPassword)
		if strings.Contains(err.Error(), "wrong\"") {
			t.Errorf("the password shows: %v", err)
		}
	}
	if got := passwordsTried(t, log); !slices.Equal(got, []string{"wrong"}) || *asked != 1 {
		t.Errorf("sudo was given %q, asked %d times", got, *asked)
	}
}

func TestSudoManyAtOnce(t *testing.T) {
	c, log, asked := machine(t, "password", "wrong")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			_, err := c.Run(t.Context(), asRoot())
			sudoError(t, err, remote.SudoWrongPassword)
		})
	}
	wg.Wait()
	if got := passwordsTried(t, log); len(got) != 1 || *asked != 1 {
		t.Errorf("sudo was given %q, asked %d times", got, *asked)
	}
}

func TestSudoKinds(t *testing.T) {
	cases := []struct {
		name, kind, password string
		want                 remote.SudoKind
	}{
		{"none given", "password", "-", remote.SudoPasswordNeeded},
		{"empty", "password", "", remote.SudoPasswordNeeded},
		{"not in sudoers", "forbidden", "right horse", remote.SudoNotAllowed},
		{"wrong", "password", "other", remote.SudoWrongPassword},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			c, _, _ := machine(t, tc.kind, tc.password)
			cmd := asRoot()
			cmd.Stdin = strings.NewReader("untouched")
			_, err := c.Run(t.Context(), cmd)
			sudoError(t, err, tc.want)
			if rest, err := io.ReadAll(cmd.Stdin); err != nil || string(rest) != "untouched" {
				t.Errorf("the input was consumed: %q left", rest)
			}
			if res, err := c.Run(t.Context(), remote.Cmd{Name: "plain", Script: "echo works"}); err != nil || string(res.Stdout) != "works\n" {
				t.Errorf("without sudo: %q %v", res.Stdout, err)
			}
		})
	}
}

// alexellis/k3sup#66: uid 0 needs no sudo, whatever the user is called; and
// another user without sudo is told so. Nobody is asked for a password.
func TestNoSudoProgram(t *testing.T) {
	bin := t.TempDir()
	for _, name := range []string{"id", "cat", "sh"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, uid := range []string{"0", "1000"} {
		stand := t.TempDir()
		if err := os.WriteFile(filepath.Join(stand, "id"), []byte("#!/bin/sh\necho "+uid+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		s := sshtest.Start(t, sshtest.Options{Env: []string{"PATH=" + stand + ":" + bin}})
		o := options(t)
		o.SudoPassword = func(context.Context, sshconn.Info) (string, error) {
			t.Error("asked for a password")
			return "", nil
		}
		_, err := dial(t, target(t, s), o).Run(t.Context(), asRoot())
		if uid == "0" {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		sudoError(t, err, remote.SudoAbsent)
	}
}

func sudoError(t *testing.T, err error, want remote.SudoKind) {
	t.Helper()
	var e *remote.SudoError
	if !errors.As(err, &e) || e.Kind != want {
		t.Errorf("got %v, want a sudo error of kind %s", err, want)
	}
}
