//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/gpuctl/gpuctl/bootstrap"
	"github.com/gpuctl/gpuctl/bootstrap/sshconn/sshtest"
)

// noRoot and lockedSudo are stand-ins of a machine's programs: the user is 1000,
// sudo wants a password and notes each it is given. Synthetic; its words are sudo's.
const (
	noRoot     = "#!/bin/sh\n[ \"$*\" != -u ] || { echo 1000; exit; }\nexec /usr/bin/id \"$@\"\n"
	lockedSudo = `#!/bin/sh
case "$*" in *-n*) echo "sudo: a password is required" >&2; exit 1 ;; esac
while IFS= read -r given; do echo "$given" >>LOG; echo "Sorry, try again." >&2; done
echo "sudo: 1 incorrect password attempt" >&2
exit 1
`
)

// TestBadInputOnTheWay: what keeps gpuctl out of a machine ends the run with
// exit code 4, one message with its entry's words, and not a command.
func TestBadInputOnTheWay(t *testing.T) {
	private := sshtest.NewPrivate(t)
	key := sshtest.KeyFile(t, t.TempDir(), "id", private, "")
	bin := func(t *testing.T, programs map[string]string) string {
		dir := t.TempDir()
		for name, text := range programs {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.ReplaceAll(text, "LOG", filepath.Join(dir, "log"))), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	t.Setenv("SUDO_PASSWORD", "not-it")
	locked := bin(t, map[string]string{"id": noRoot, "sudo": lockedSudo})
	for name, c := range map[string]struct {
		server sshtest.Options
		extra  string // of the machine
		ssh    string // of spec.ssh
		code   string
		says   []string
	}{
		"unreachable host":       {sshtest.Options{}, "host: nowhere.invalid", "", "ssh-name-unknown", []string{"nowhere.invalid"}},
		"wrong key":              {sshtest.Options{Accept: []ssh.PublicKey{sshtest.NewKey(t).PublicKey()}}, "", "", "ssh-no-key-accepted", []string{"auth", "none of 1 keys was accepted"}},
		"changed host key":       {sshtest.Options{}, "hostKey: " + strings.TrimSpace(string(ssh.MarshalAuthorizedKey(sshtest.NewKey(t).PublicKey()))), "", "ssh-host-key-changed", []string{"hostkey", "the pinned key is"}},
		"wrong sudo password":    {sshtest.Options{Path: locked}, "", "sudoPassword: {env: SUDO_PASSWORD}", "sudo-wrong-password", []string{"sudo", "password"}},
		"sudo wants a password":  {sshtest.Options{Path: locked}, "", "", "sudo-password-needed", []string{"sudo", "password"}},
		"no sudo":                {sshtest.Options{Path: bin(t, map[string]string{"id": noRoot, "sudo": "#!/bin/sh\necho 'sudo: command not found' >&2\nexit 127\n"})}, "", "", "sudo-absent", []string{"sudo"}},
		"may not become root":    {sshtest.Options{Path: bin(t, map[string]string{"id": noRoot, "sudo": "#!/bin/sh\necho 'ubuntu is not in the sudoers file.' >&2\nexit 1\n"})}, "", "", "sudo-not-allowed", []string{"sudo"}},
		"nobody of the name ops": {sshtest.Options{User: "root"}, "user: ops", "", "ssh-no-key-accepted", []string{"ops"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := sshtest.Start(t, c.server)
			host, user, rest := "host: "+server.Host(), "user: ubuntu", ""
			switch {
			case strings.HasPrefix(c.extra, "host:"):
				host = c.extra
			case strings.HasPrefix(c.extra, "user:"):
				user = c.extra
			case c.extra != "":
				rest = "\n      " + c.extra
			}
			yaml := fmt.Sprintf("apiVersion: gpuctl.dev/v1alpha1\nkind: Cluster\nmetadata: {name: lab}\nspec:\n  ssh: {%s}\n  machines:\n    - name: gpu-1\n      role: server\n      %s\n      %s\n      port: %d\n      identityFile: %s%s\n",
				c.ssh, host, user, server.Port(), key, rest)
			got := runReal(t, yaml, "check", "--no-pairs", "--accept-new-host-keys", "-o", "json")
			if got.code != exitUnreachable {
				t.Errorf("exit code %d, want %d: %s", got.code, exitUnreachable, got.err)
			}
			var told bootstrap.CheckResult
			if err := json.Unmarshal([]byte(got.out), &told); err != nil || len(told.Machines) != 1 || string(told.Machines[0].Code) != c.code {
				t.Errorf("%v, the machine is %+v, want code %s", err, told.Machines, c.code)
			}
			if n := strings.Count(got.err, "error:"); n != 1 || !strings.Contains(got.err, "gpu-1") {
				t.Errorf("%d messages, want one that names the machine:\n%s", n, got.err)
			}
			for _, word := range c.says {
				if !strings.Contains(got.err, word) {
					t.Errorf("no word of %q:\n%s", word, got.err)
				}
			}
			if len(told.Findings) > 0 || strings.Contains(got.out+got.err, "not-it") {
				t.Errorf("it says too much:\n%s%s", got.out, got.err)
			}
		})
	}
	if tried, err := os.ReadFile(filepath.Join(locked, "log")); err != nil || string(tried) != "not-it\n" {
		t.Errorf("sudo was given %q, %v; once is right", tried, err)
	}
}
