//go:build unix

package sshtest

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// NewPrivate returns a fresh ed25519 private key.
func NewPrivate(t testing.TB) ed25519.PrivateKey {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return private
}

// Signer turns a private key into a signer.
func Signer(t testing.TB, private any) ssh.Signer {
	t.Helper()
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

// NewKey returns a fresh ed25519 signer.
func NewKey(t testing.TB) ssh.Signer {
	t.Helper()
	return Signer(t, NewPrivate(t))
}

// KeyFile writes a private key in OpenSSH's form, locked where a passphrase is given, and returns its path.
func KeyFile(t testing.TB, dir, name string, private any, passphrase string) string {
	t.Helper()
	block, err := ssh.MarshalPrivateKey(private, "test")
	if passphrase != "" {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(private, "test", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// PublicFile writes a public key in authorized_keys form and returns its path.
func PublicFile(t testing.TB, dir, name string, key ssh.PublicKey) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, ssh.MarshalAuthorizedKey(key), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Agent runs an agent with these private keys and returns its socket.
func Agent(t testing.TB, keys ...any) string {
	t.Helper()
	ring := agent.NewKeyring()
	for _, k := range keys {
		if err := ring.Add(agent.AddedKey{PrivateKey: k}); err != nil {
			t.Fatal(err)
		}
	}
	// A socket's path is short; t.TempDir() may be too long for it.
	dir, err := os.MkdirTemp("", "agent")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = l.Close()
		_ = os.RemoveAll(dir)
	})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _ = agent.ServeAgent(ring, c) }()
		}
	}()
	return l.Addr().String()
}
