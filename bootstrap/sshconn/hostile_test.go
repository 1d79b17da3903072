//go:build unix

package sshconn_test

import (
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/bootstrap/sshconn"
	"github.com/gpuctl/gpuctl/bootstrap/sshconn/sshtest"
)

// Somebody takes the machine's place in the middle of a run: the connection that
// is made again refuses the other key, and says so.
func TestKeyChangesInMidRun(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{})
	o := options(t)
	conn := dial(t, target(t, s), o)
	if _, err := conn.Run(t.Context(), remote.Cmd{Name: "x", Script: "true"}); err != nil {
		t.Fatal(err)
	}
	logins := s.Logins.Load()
	other := sshtest.NewKey(t)
	s.Rekey(other)
	s.Cut()
	_, err := sshconn.Dial(t.Context(), target(t, s), o)
	e := connectError(t, err)
	if e.Kind != remote.HostKey || !e.Permanent() || !strings.Contains(e.Error(), ssh.FingerprintSHA256(other.PublicKey())) {
		t.Errorf("kind %s, permanent %v: %v", e.Kind, e.Permanent(), e)
	}
	if s.Logins.Load() != logins {
		t.Error("logged in all the same")
	}
}

// A machine that knows nothing but algorithms that are broken is not logged in to,
// and the error names what it offers.
func TestWeakAlgorithmsAlone(t *testing.T) {
	for word, o := range map[string]sshtest.Options{
		ssh.InsecureKeyExchangeDH1SHA1: {KeyExchanges: []string{ssh.InsecureKeyExchangeDH1SHA1}},
		ssh.InsecureCipherRC4:          {Ciphers: []string{ssh.InsecureCipherRC4}},
	} {
		s := sshtest.Start(t, o)
		_, err := sshconn.Dial(t.Context(), target(t, s), options(t))
		e := connectError(t, err)
		if e.Kind != remote.Handshake || !strings.Contains(e.Error(), word) || s.Logins.Load() != 0 {
			t.Errorf("%s: kind %s, %d logins: %v", word, e.Kind, s.Logins.Load(), e)
		}
	}
}
