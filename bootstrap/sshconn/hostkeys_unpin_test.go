//go:build unix

package sshconn_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/gpuctl/gpuctl/bootstrap/sshconn"
	"github.com/gpuctl/gpuctl/bootstrap/sshconn/sshtest"
)

func TestUnpinForgetsOneKeyAlone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "known_hosts")
	if err := sshconn.Unpin(file, "SHA256:none"); err != nil {
		t.Fatalf("a file that is not there: %v", err)
	}
	stays, goes := sshtest.NewKey(t).PublicKey(), sshtest.NewKey(t).PublicKey()
	other := "# mine\n" + knownhosts.Line([]string{"a"}, stays) + "\n@revoked * " + knownhosts.Line([]string{"b"}, goes)[2:] + "\n"
	if err := os.WriteFile(file, []byte(other+knownhosts.Line([]string{"b"}, goes)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := sshconn.Unpin(file, ssh.FingerprintSHA256(goes)); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if err != nil || string(got) != other {
		t.Errorf("left %q, %v; want %q", got, err, other)
	}
}
