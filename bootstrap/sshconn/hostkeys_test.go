//go:build unix

package sshconn_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/bootstrap/sshconn"
	"github.com/gpuctl/gpuctl/bootstrap/sshconn/sshtest"
)

func ecdsaKey(t *testing.T) ssh.Signer {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return sshtest.Signer(t, k)
}

func rsaKey(t *testing.T) ssh.Signer {
	t.Helper()
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return sshtest.Signer(t, k)
}

// certificate signs a key by a CA, for hosts or for users.
func certificate(t *testing.T, ca, key ssh.Signer, kind uint32, principal string) *ssh.Certificate {
	t.Helper()
	c := &ssh.Certificate{
		Key: key.PublicKey(), CertType: kind, KeyId: "made-up", ValidPrincipals: []string{principal}, ValidBefore: ssh.CertTimeInfinity,
		Permissions: ssh.Permissions{},
	}
	if err := c.SignCert(rand.Reader, ca); err != nil {
		t.Fatal(err)
	}
	return c
}

func certSigner(t *testing.T, c *ssh.Certificate, key ssh.Signer) ssh.Signer {
	t.Helper()
	s, err := ssh.NewCertSigner(c, key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func writeKnown(t *testing.T, file string, lines ...string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func connectError(t *testing.T, err error) *remote.ConnectError {
	t.Helper()
	var e *remote.ConnectError
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a connect error", err)
	}
	return e
}

// refusedKey dials a machine whose key must not be taken.
func refusedKey(t *testing.T, s *sshtest.Server, o sshconn.Options, tgt sshconn.Target, words ...string) *remote.ConnectError {
	t.Helper()
	_, err := sshconn.Dial(t.Context(), tgt, o)
	e := connectError(t, err)
	if e.Kind != remote.HostKey || !e.Permanent() {
		t.Errorf("kind %s, permanent %v: %v", e.Kind, e.Permanent(), e)
	}
	for _, w := range words {
		if !strings.Contains(e.Error(), w) {
			t.Errorf("the error lacks %q: %v", w, e)
		}
	}
	if s.Logins.Load() != 0 {
		t.Error("logged in all the same")
	}
	return e
}

// k0sproject/k0sctl#813: only the ed25519 key is on file, the server has three.
func TestKnownHostsHasOnlyEd25519(t *testing.T) {
	ed := sshtest.NewKey(t)
	s := sshtest.Start(t, sshtest.Options{HostKeys: []ssh.Signer{rsaKey(t), ecdsaKey(t), ed}})
	o := options(t)
	line := knownhosts.Line([]string{s.Addr}, ed.PublicKey())
	writeKnown(t, o.KnownHosts, line)
	c := dial(t, target(t, s), o)
	if c.Info().KeyType != ssh.KeyAlgoED25519 || c.Info().FirstSeen {
		t.Errorf("got %+v", c.Info())
	}
	if text, err := os.ReadFile(o.KnownHosts); err != nil || string(text) != line+"\n" {
		t.Errorf("the file has changed: %q %v", text, err)
	}

	other := sshtest.Start(t, sshtest.Options{HostKeys: []ssh.Signer{ecdsaKey(t)}})
	writeKnown(t, o.KnownHosts, knownhosts.Line([]string{other.Addr}, ed.PublicKey()))
	refusedKey(t, other, o, target(t, other), "the known key is ssh-ed25519", "the server offers ecdsa-sha2-nistp256", o.KnownHosts+":1")
}

// golang/go#33366: the server shows a certificate, the plain key is on file.
func TestHostCertificates(t *testing.T) {
	ca, key := sshtest.NewKey(t), sshtest.NewKey(t)
	cert := certSigner(t, certificate(t, ca, key, ssh.HostCert, "127.0.0.1"), key)
	both := sshtest.Start(t, sshtest.Options{HostKeys: []ssh.Signer{cert, key}})
	o := options(t)
	writeKnown(t, o.KnownHosts, knownhosts.Line([]string{both.Addr}, key.PublicKey()))
	dial(t, target(t, both), o)

	authority := "@cert-authority * " + strings.TrimSpace(string(ssh.MarshalAuthorizedKey(ca.PublicKey())))
	writeKnown(t, o.KnownHosts, authority)
	dial(t, target(t, both), o)

	plain := sshtest.Start(t, sshtest.Options{})
	refusedKey(t, plain, o, target(t, plain))

	writeKnown(t, o.KnownHosts, "@revoked * "+strings.TrimSpace(string(ssh.MarshalAuthorizedKey(plain.HostKey))))
	refusedKey(t, plain, o, target(t, plain), "revoked", o.KnownHosts+":1")
}

func TestAcceptNewRecordsOnce(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{})
	o := options(t)
	o.KnownHosts = filepath.Join(t.TempDir(), "deep", "known_hosts")
	var told []sshconn.Info
	o.OnNewHostKey = func(i sshconn.Info) { told = append(told, i) }
	tgt := target(t, s)
	if c := dial(t, tgt, o); !c.Info().FirstSeen {
		t.Error("not seen for the first time")
	}
	if c := dial(t, tgt, o); c.Info().FirstSeen {
		t.Error("seen for the first time twice")
	}
	text, err := os.ReadFile(o.KnownHosts)
	if err != nil || string(text) != knownhosts.Line([]string{s.Addr}, s.HostKey)+"\n" {
		t.Errorf("file: %q %v", text, err)
	}
	if info, err := os.Stat(o.KnownHosts); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode: %v %v", info.Mode(), err)
	}
	if len(told) != 1 || told[0].Fingerprint != ssh.FingerprintSHA256(s.HostKey) {
		t.Errorf("told %+v", told)
	}
}

func TestStrictAndPinned(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{})
	o := options(t)
	tgt := target(t, s)
	tgt.HostKey = string(ssh.MarshalAuthorizedKey(sshtest.NewKey(t).PublicKey()))
	refusedKey(t, s, o, tgt, "pinned", ssh.FingerprintSHA256(s.HostKey))
	o.Strict = true
	tgt.HostKey = ""
	refusedKey(t, s, o, tgt, "unknown", ssh.FingerprintSHA256(s.HostKey))
	tgt.HostKey = string(ssh.MarshalAuthorizedKey(s.HostKey))
	dial(t, tgt, o)
	if _, err := os.Stat(o.KnownHosts); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a pinned key was recorded: %v", err)
	}
}

// vitobotta/hetzner-k3s#3: the address is reused, the key has changed.
func TestChangedKey(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{})
	o := options(t)
	old := sshtest.NewKey(t).PublicKey()
	writeKnown(t, o.KnownHosts, "# comment", knownhosts.Line([]string{s.Addr}, old))
	e := refusedKey(t, s, o, target(t, s), "has changed", ssh.FingerprintSHA256(old), ssh.FingerprintSHA256(s.HostKey), o.KnownHosts+":2")
	if want := "ssh-keygen -f " + o.KnownHosts + " -R '[127.0.0.1]:"; !strings.Contains(e.Hint, want) {
		t.Errorf("hint %q lacks %q", e.Hint, want)
	}
}
