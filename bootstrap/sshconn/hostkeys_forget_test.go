//go:build unix

package sshconn_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
	xknownhosts "golang.org/x/crypto/ssh/knownhosts"

	"github.com/gpuctl/gpuctl/bootstrap/sshconn"
	"github.com/gpuctl/gpuctl/bootstrap/sshconn/sshtest"
)

// microsoft/lisa#1703: the name is hashed, and the file lists others too.
func TestReplaceKeyForgetsThisMachineAlone(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{})
	o := options(t)
	old := sshtest.NewKey(t).PublicKey()
	name := xknownhosts.Normalize(s.Addr)
	text := func(key ssh.PublicKey) string { return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))) }
	others := []string{
		"# a comment",
		knownhosts.Line([]string{"127.0.0.1"}, old), // another port is another machine
		"@cert-authority *.example.com " + text(old),
		xknownhosts.HashHostname("198.51.100.7") + " " + text(old),
	}
	writeKnown(t, o.KnownHosts, others[0], others[1], xknownhosts.HashHostname(name)+" "+text(old), others[2],
		name+",other.example.com "+text(rsaKey(t).PublicKey()), others[3], name+" "+text(old))
	_, err := sshconn.Dial(t.Context(), target(t, s), o)
	var changed *sshconn.KeyChangedError
	if !errors.As(err, &changed) {
		t.Fatalf("got %v", err)
	}
	if changed.Name != name || changed.Offered != "ssh-ed25519 "+ssh.FingerprintSHA256(s.HostKey) || !strings.Contains(strings.Join(changed.Known, " "), ssh.FingerprintSHA256(old)) {
		t.Errorf("%+v", changed)
	}
	if err := sshconn.ReplaceKey(o.KnownHosts, changed); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(o.KnownHosts)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(got)), "\n")
	if len(lines) != 6 || lines[0] != others[0] || lines[1] != others[1] || lines[2] != others[2] || !strings.HasPrefix(lines[3], "other.example.com ssh-rsa ") ||
		lines[4] != others[3] || lines[5] != knownhosts.Line([]string{s.Addr}, s.HostKey) {
		t.Errorf("the file is now:\n%s", got)
	}
	if c := dial(t, target(t, s), o); c.Info().FirstSeen {
		t.Error("the key that was shown is not pinned")
	}
	if _, err := os.Stat(o.KnownHosts + ".lock"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the lock stays: %v", err)
	}
}

// The old key may stand in the user's own file, which is not gpuctl's to change.
func TestReplaceKeyInAFileThatIsNotThere(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{})
	o := options(t)
	writeKnown(t, o.KnownHosts, knownhosts.Line([]string{s.Addr}, sshtest.NewKey(t).PublicKey()))
	_, err := sshconn.Dial(t.Context(), target(t, s), o)
	var changed *sshconn.KeyChangedError
	if !errors.As(err, &changed) {
		t.Fatalf("got %v", err)
	}
	file := filepath.Join(t.TempDir(), "known_hosts")
	if err := sshconn.ReplaceKey(file, changed); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != knownhosts.Line([]string{s.Addr}, s.HostKey)+"\n" {
		t.Errorf("%q %v", got, err)
	}
}
