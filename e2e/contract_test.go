//go:build lab

package e2e_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/bootstrap/sshconn"
	"github.com/gpuctl/gpuctl/bootstrap/sshconn/sshtest"
	"github.com/gpuctl/gpuctl/e2e/lab/machine"
)

// TestContractOnMachines: the connection keeps its contract against the OpenSSH
// of a machine, for every kind of user, under several login shells, and where
// sshd forbids forwarding (loft-sh/devpod-provider-ssh#39, pressly/sup#59).
func TestContractOnMachines(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "contract")
	ca, key := certifiedKey(t)
	machines := s.Machines(
		machine.Spec{Name: "bash", SSHD: []string{"TrustedUserCAKeys /etc/ssh/users_ca.pub"}, Files: map[string]machine.File{"/etc/ssh/users_ca.pub": {Content: ca}}},
		machine.Spec{Name: "fish", Shell: "/usr/bin/fish", SSHPort: 2222},
		machine.Spec{Name: "tcsh", Shell: "/bin/tcsh", SSHD: []string{"AllowTcpForwarding no"}},
	)
	target := func(m *machine.Machine, user string) sshconn.Target {
		return sshconn.Target{Name: m.Name, Host: m.IP, Port: m.Port, User: user, IdentityFile: s.Lab.Key()}
	}
	for _, m := range machines {
		for _, user := range []string{"root", "ubuntu", "ops"} {
			t.Run(m.Name+"/"+user, func(t *testing.T) {
				sshtest.Contract(t, func(t *testing.T) remote.Host { return connect(t, target(m, user)) })
			})
		}
	}
	t.Run("noise", func(t *testing.T) { noiseIsCutOff(t, target(machines[0], "ubuntu")) })
	t.Run("locked key with a certificate", func(t *testing.T) {
		tgt := target(machines[0], "ubuntu")
		tgt.IdentityFile = key
		c := connect(t, tgt)
		if out := output(t, c, remote.Cmd{Name: "who", Script: "id -un"}); out != "ubuntu\n" {
			t.Errorf("logged in as %q", out)
		}
		if err := os.Remove(key + "-cert.pub"); err != nil {
			t.Fatal(err)
		}
		_, err := sshconn.Dial(t.Context(), tgt, options(t))
		var refused *remote.ConnectError
		if !errors.As(err, &refused) || refused.Kind != remote.Auth {
			t.Errorf("without the certificate: %v", err)
		}
	})
	t.Run("no sudo", func(t *testing.T) { // alexellis/k3sup#66
		s.Exec(machines[2], "rm -f /usr/bin/sudo")
		sshtest.Contract(t, func(t *testing.T) remote.Host { return connect(t, target(machines[2], "root")) })
		_, err := connect(t, target(machines[2], "ubuntu")).Run(t.Context(), remote.Cmd{Name: "x", Script: "true", Sudo: true})
		var sudo *remote.SudoError
		if !errors.As(err, &sudo) || sudo.Kind != remote.SudoAbsent {
			t.Errorf("a user who is not root: %v", err)
		}
	})
}

// options has the answers to what a login may ask.
func options(t *testing.T) sshconn.Options {
	t.Helper()
	return sshconn.Options{
		ConfigFile: "none", KnownHosts: filepath.Join(t.TempDir(), "known_hosts"),
		SudoPassword: func(context.Context, sshconn.Info) (string, error) { return password, nil },
		Passphrase:   func(context.Context, string) ([]byte, error) { return []byte(password), nil },
	}
}

func connect(t *testing.T, target sshconn.Target) *sshconn.Conn {
	t.Helper()
	c, err := sshconn.Dial(t.Context(), target, options(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func output(t *testing.T, c remote.Runner, cmd remote.Cmd) string {
	t.Helper()
	res, err := c.Run(t.Context(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	return string(res.Stdout)
}

// certifiedKey makes a key with a passphrase and a certificate of a new authority
// for user ubuntu, as ssh-keygen makes them, and returns the authority's public key.
func certifiedKey(t *testing.T) (ca []byte, key string) {
	t.Helper()
	dir := t.TempDir()
	key = filepath.Join(dir, "id")
	for _, args := range [][]string{
		{"-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, "ca")},
		{"-q", "-t", "ed25519", "-N", password, "-f", key},
		{"-q", "-s", filepath.Join(dir, "ca"), "-I", "made-up", "-n", "ubuntu", key + ".pub"},
	} {
		if out, err := exec.Command("ssh-keygen", args...).CombinedOutput(); err != nil {
			t.Fatalf("ssh-keygen: %v: %s", err, out)
		}
	}
	ca, err := os.ReadFile(filepath.Join(dir, "ca.pub"))
	if err != nil {
		t.Fatal(err)
	}
	return ca, key
}

// noiseIsCutOff: start files that print before and after what was asked for
// (kubernetes-sigs/cluster-api-provider-vsphere#282, skypilot-org/skypilot#7174)
// leave no trace in it.
func noiseIsCutOff(t *testing.T, tgt sshconn.Target) {
	const rc = "echo '== GPU CLOUD * welcome =='\necho 'base: activated' >&2\ntrap 'echo Last metadata expiration check' EXIT\n"
	output(t, connect(t, tgt), remote.Cmd{Name: "noise", Script: `cat >"$HOME/.bashrc"`, Stdin: strings.NewReader(rc)})
	noisy := connect(t, tgt)
	for _, sudo := range []bool{false, true} {
		if out := output(t, noisy, remote.Cmd{Name: "file", Script: "printf 'apiVersion: v1\\nkind: Config\\n'", Sudo: sudo}); out != "apiVersion: v1\nkind: Config\n" {
			t.Errorf("sudo %v: %q", sudo, out)
		}
	}
	if data, err := remote.ReadFile(t.Context(), noisy, "/etc/hostname", true); err != nil || string(data) != tgt.Name+"\n" {
		t.Errorf("a file: %v %q", err, data)
	}
}
