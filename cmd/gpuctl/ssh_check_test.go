//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/sshconn/sshtest"
	"github.com/gpuctl/gpuctl/internal/ui"
)

// checkSSH runs gpuctl ssh check in a directory; file is gpuctl.yaml, "" for none.
func checkSSH(t *testing.T, file string, args ...string) (code int, out, errOut string) {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("HOME", dir)
	t.Setenv("SSH_AUTH_SOCK", "")
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	if file != "" {
		if err := os.WriteFile("gpuctl.yaml", []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var o, e bytes.Buffer
	code = run(append([]string{"ssh", "check"}, args...), app{
		in: strings.NewReader(""), out: &o, err: &e, size: func() ui.Size { return ui.Size{Width: 80, Height: 24} },
	})
	return code, o.String(), e.String()
}

func machineLine(name string, s *sshtest.Server, key string) string {
	return fmt.Sprintf("    - {name: %s, role: agent, host: %s, port: %d, user: ubuntu, identityFile: %s}\n", name, s.Host(), s.Port(), key)
}

func TestSSHCheck(t *testing.T) {
	good := sshtest.Start(t, sshtest.Options{User: "ubuntu"})
	locked := sshtest.Start(t, sshtest.Options{User: "root", NoForwarding: true})
	key := sshtest.KeyFile(t, t.TempDir(), "id", sshtest.NewPrivate(t), "")
	file := "apiVersion: gpuctl.dev/v1alpha1\nkind: Cluster\nmetadata: {name: lab}\nspec:\n  machines:\n" +
		"    - {name: s, role: server, host: 203.0.113.1}\n" + machineLine("good", good, key) + machineLine("locked", locked, key)

	code, out, errOut := checkSSH(t, file, "good")
	if code != 0 || errOut != "" {
		t.Errorf("good: exit code %d, %s", code, errOut)
	}
	for _, want := range []string{"ubuntu@127.0.0.1", "accepted for the first time", "key " + key, "accepted", "forwarding  allowed", "all is well"} {
		if !strings.Contains(out, want) {
			t.Errorf("good: no %q in:\n%s", want, out)
		}
	}

	code, out, errOut = checkSSH(t, file, "good", "locked", "-o", "json")
	if code != exitUnreachable || !strings.Contains(errOut, "1 of 2 machines cannot be used") {
		t.Errorf("locked: exit code %d, %s", code, errOut)
	}
	var result sshViews
	if err := json.Unmarshal([]byte(out), &result); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	m := result.Machines
	if len(m) != 2 || !m[0].OK || m[0].HostKey == nil || m[0].Forwarding != "direct" || m[0].Failure != nil {
		t.Errorf("good: %s", out)
	}
	if len(m) != 2 || m[1].OK || m[1].Failure == nil || m[1].Failure.Kind != "auth" || m[1].Failure.Hint == "" || m[1].HostKey != nil {
		t.Errorf("locked: %s", out)
	}
}

// A machine needs no file; one that is named wrongly is a usage error.
func TestSSHCheckWithoutAFile(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	code, out, _ := checkSSH(t, "", "root@"+address)
	if code != exitUnreachable || !strings.Contains(out, "failed at refused") || !strings.Contains(out, "hint: nothing listens") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	if code, _, errOut := checkSSH(t, "", "-f", "other.yaml", "root@"+address); code != exitUsage || !strings.Contains(errOut, "other.yaml") {
		t.Errorf("a file that was named must be there: %d, %s", code, errOut)
	}
	if code, _, errOut := checkSSH(t, "", "a b"); code != exitUsage {
		t.Errorf("no address: %d, %s", code, errOut)
	}
}
