//go:build lab

package sshconn_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/bootstrap/sshconn"
	"github.com/gpuctl/gpuctl/bootstrap/sshconn/sshtest"
)

// sshd starts OpenSSH's server as an ordinary process on a free port.
func sshd(t *testing.T, settings string) sshconn.Target {
	t.Helper()
	dir := t.TempDir()
	private := sshtest.NewPrivate(t)
	key := sshtest.KeyFile(t, dir, "id", private, "")
	sshtest.PublicFile(t, dir, "authorized_keys", sshtest.Signer(t, private).PublicKey())
	hostKey := sshtest.KeyFile(t, dir, "host_ed25519", sshtest.NewPrivate(t), "")
	host, port, err := net.SplitHostPort(freePort(t))
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "sshd_config")
	text := fmt.Sprintf("ListenAddress %s\nPort %s\nHostKey %s\nAuthorizedKeysFile %s/authorized_keys\nStrictModes no\nPidFile none\nUsePAM no\nPermitRootLogin prohibit-password\n%s\n",
		host, port, hostKey, dir, settings)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	cmd := exec.Command("/usr/sbin/sshd", "-D", "-e", "-f", config)
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("sshd: %s", log.String())
		}
	})
	return sshconn.Target{Host: host, Port: atoi(t, port), User: "root", IdentityFile: key}
}

// The contract against OpenSSH's own server, with and without forwarding.
func TestContractOpenSSH(t *testing.T) {
	for name, settings := range map[string]string{"stock": "", "no forwarding": "AllowTcpForwarding no"} {
		t.Run(name, func(t *testing.T) {
			tgt := sshd(t, settings)
			sshtest.Contract(t, func(t *testing.T) remote.Host {
				o := options(t)
				o.RetryFor = 10 * time.Second // until sshd listens
				return dial(t, tgt, o)
			})
		})
	}
}

// k0sproject/k0sctl#422 with the limit that sshd really keeps.
func TestAgentFullOfKeysOpenSSH(t *testing.T) {
	tgt := sshd(t, "MaxAuthTries 6")
	o := options(t)
	o.RetryFor = 10 * time.Second
	dial(t, tgt, o)
	var keys []any
	for range 7 {
		keys = append(keys, sshtest.NewPrivate(t))
	}
	t.Setenv("SSH_AUTH_SOCK", sshtest.Agent(t, keys...))
	dial(t, tgt, o)
	tgt.IdentityFile = ""
	_, err := sshconn.Dial(t.Context(), tgt, o)
	if e := connectError(t, err); e.Kind != remote.Auth || !bytes.Contains([]byte(e.Error()), []byte("ended the login after")) {
		t.Error(err)
	}
}
