//go:build unix

package sshconn_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/bootstrap/sshconn"
	"github.com/gpuctl/gpuctl/bootstrap/sshconn/sshtest"
)

// shells are the login shells of this computer, /bin/sh at least.
func shells() []string {
	found := []string{"/bin/sh"}
	for _, name := range []string{"bash", "zsh", "fish", "tcsh"} {
		if path, err := exec.LookPath(name); err == nil {
			found = append(found, path)
		}
	}
	return found
}

// target is the way to a server, with a key of its own.
func target(t *testing.T, s *sshtest.Server) sshconn.Target {
	t.Helper()
	key := sshtest.KeyFile(t, t.TempDir(), "id", sshtest.NewPrivate(t), "")
	return sshconn.Target{Host: s.Host(), Port: s.Port(), User: "ubuntu", IdentityFile: key}
}

// options reads no file of the user and no agent.
func options(t *testing.T) sshconn.Options {
	t.Helper()
	t.Setenv("SSH_AUTH_SOCK", "")
	t.Setenv("HOME", t.TempDir())
	return sshconn.Options{ConfigFile: "none", KnownHosts: filepath.Join(t.TempDir(), "known_hosts")}
}

// dial connects and closes at the end of the test.
func dial(t *testing.T, target sshconn.Target, o sshconn.Options) *sshconn.Conn {
	t.Helper()
	c, err := sshconn.Dial(t.Context(), target, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return c
}

func TestContract(t *testing.T) {
	for _, shell := range shells() {
		t.Run(filepath.Base(shell), func(t *testing.T) {
			s := sshtest.Start(t, sshtest.Options{
				Shell: shell, Path: standIns(t, "free"),
				Noise: "*** welcome ***\n\x1eno mark\n", NoiseErr: "bash: warning: setlocale\n", After: "bye\n",
			})
			sshtest.Contract(t, func(t *testing.T) remote.Host { return dial(t, target(t, s), options(t)) })
		})
	}
}

func TestContractThroughRelay(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{NoForwarding: true, Path: standIns(t, "root")})
	sshtest.Contract(t, func(t *testing.T) remote.Host { return dial(t, target(t, s), options(t)) })
}
