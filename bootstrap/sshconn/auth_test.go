//go:build unix

package sshconn_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/bootstrap/sshconn"
	"github.com/gpuctl/gpuctl/bootstrap/sshconn/sshtest"
)

// keyring is a server that takes one key, and that key in all its forms.
type keyring struct {
	server  *sshtest.Server
	dir     string
	private any
	signer  ssh.Signer
	target  sshconn.Target
	opts    sshconn.Options
}

func newKeyring(t *testing.T) *keyring {
	t.Helper()
	private := sshtest.NewPrivate(t)
	k := &keyring{dir: t.TempDir(), private: private, signer: sshtest.Signer(t, private), opts: options(t)}
	k.server = sshtest.Start(t, sshtest.Options{User: "ubuntu", MaxAuthTries: 6, Accept: []ssh.PublicKey{k.signer.PublicKey()}})
	k.target = sshconn.Target{Host: k.server.Host(), Port: k.server.Port(), User: "ubuntu"}
	return k
}

// agent fills an agent with seven keys that are no use, and the right one at the end if asked.
func (k *keyring) agent(t *testing.T, withRight bool) {
	t.Helper()
	var keys []any
	for range 7 {
		keys = append(keys, sshtest.NewPrivate(t))
	}
	if withRight {
		keys = append(keys, k.private)
	}
	t.Setenv("SSH_AUTH_SOCK", sshtest.Agent(t, keys...))
}

// config writes an ssh_config and makes the target use it.
func (k *keyring) config(t *testing.T, text string) {
	t.Helper()
	k.opts.ConfigFile = filepath.Join(k.dir, "config")
	if err := os.WriteFile(k.opts.ConfigFile, []byte("Host *\n"+text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (k *keyring) refused(t *testing.T) *remote.ConnectError {
	t.Helper()
	_, err := sshconn.Dial(t.Context(), k.target, k.opts)
	e := connectError(t, err)
	if e.Kind != remote.Auth || !e.Permanent() {
		t.Errorf("kind %s: %v", e.Kind, e)
	}
	return e
}

// k0sproject/k0sctl#422: an agent full of keys and a server that ends the login after six.
func TestAgentFullOfKeys(t *testing.T) {
	t.Run("named public half, key in the agent", func(t *testing.T) {
		k := newKeyring(t)
		k.agent(t, true)
		k.target.IdentityFile = sshtest.PublicFile(t, k.dir, "fleet.pub", k.signer.PublicKey())
		dial(t, k.target, k.opts)
	})
	t.Run("named by ssh_config", func(t *testing.T) {
		k := newKeyring(t)
		k.agent(t, true)
		k.config(t, "IdentityFile "+sshtest.PublicFile(t, k.dir, "fleet.pub", k.signer.PublicKey())+"\n")
		dial(t, k.target, k.opts)
	})
	t.Run("only the public half beside the name", func(t *testing.T) { // a key on a card, alexellis/k3sup#400
		k := newKeyring(t)
		k.agent(t, true)
		sshtest.PublicFile(t, k.dir, "id_card.pub", k.signer.PublicKey())
		k.target.IdentityFile = filepath.Join(k.dir, "id_card")
		dial(t, k.target, k.opts)
	})
	t.Run("named file, not in the agent", func(t *testing.T) {
		k := newKeyring(t)
		k.agent(t, false)
		k.target.IdentityFile = sshtest.KeyFile(t, k.dir, "id", k.private, "")
		dial(t, k.target, k.opts)
	})
	t.Run("locked file, key in the agent", func(t *testing.T) {
		k := newKeyring(t)
		k.agent(t, true)
		k.target.IdentityFile = sshtest.KeyFile(t, k.dir, "id", k.private, "made-up phrase")
		dial(t, k.target, k.opts)
	})
	t.Run("nothing named", func(t *testing.T) {
		k := newKeyring(t)
		k.agent(t, true)
		e := k.refused(t)
		if !strings.Contains(e.Error(), "ended the login after") || !strings.Contains(e.Hint, "IdentitiesOnly") {
			t.Errorf("error %v, hint %q", e, e.Hint)
		}
		answers := map[string]int{}
		for _, a := range e.Trace {
			if strings.HasPrefix(a.What, "key agent key ssh-ed25519 SHA256:") {
				answers[a.Answer]++
			}
		}
		if answers["not accepted"] < 5 || answers["not offered: the login had ended"] < 1 {
			t.Errorf("answers %v", answers)
		}
	})
	t.Run("IdentitiesOnly", func(t *testing.T) {
		k := newKeyring(t)
		k.agent(t, true)
		wrong := sshtest.KeyFile(t, k.dir, "wrong", sshtest.NewPrivate(t), "")
		k.config(t, "IdentitiesOnly yes\nIdentityFile "+wrong+"\n")
		if e := k.refused(t); !strings.Contains(e.Error(), "none of 1 keys") {
			t.Error(e)
		}
	})
	t.Run("IdentityAgent none", func(t *testing.T) {
		k := newKeyring(t)
		k.agent(t, true)
		k.config(t, "IdentityAgent none\nIdentityFile "+k.dir+"/absent\n")
		if e := k.refused(t); !strings.Contains(e.Error(), "no key to offer") || !strings.Contains(e.Error(), k.dir+"/absent") {
			t.Error(e)
		}
	})
}

// cloudfoundry/bosh-backup-and-restore#16 and others: keys damaged on the way.
func TestDamagedKeyFiles(t *testing.T) {
	k := newKeyring(t)
	good := sshtest.KeyFile(t, k.dir, "good", k.private, "")
	text, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	s := string(text)
	forms := []struct{ name, text, words string }{
		{"crlf", strings.ReplaceAll(s, "\n", "\r\n"), ""},
		{"no-final-newline", strings.TrimSuffix(s, "\n"), ""},
		{"leading-blank-line", "\n" + s, ""},
		{"literal-backslash-n", strings.ReplaceAll(s, "\n", `\n`), "backslash and n instead of line breaks"},
		{"indented", "    " + strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n    "), "indented"},
		{"bom", "\xef\xbb\xbf" + s, "byte order mark"},
		{"cut-off", s[:40], "cut off"},
		{"damaged", s[:60] + "!!" + s[62:], "damaged"},
		{"putty", "PuTTY-User-Key-File-3: ssh-ed25519\n", "puttygen"},
		{"empty", "", "no private key"},
		{"public-by-mistake", string(ssh.MarshalAuthorizedKey(k.signer.PublicKey())), "public half"},
	}
	for _, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			k.target.IdentityFile = filepath.Join(k.dir, f.name)
			if err := os.WriteFile(k.target.IdentityFile, []byte(f.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if f.words == "" {
				dial(t, k.target, k.opts)
				return
			}
			if e := k.refused(t); !strings.Contains(e.Error(), f.words) || !strings.Contains(e.Error(), k.target.IdentityFile) {
				t.Errorf("the error lacks %q or the file: %v", f.words, e)
			}
		})
	}
}

func TestLockedKeyFile(t *testing.T) {
	k := newKeyring(t)
	k.target.IdentityFile = sshtest.KeyFile(t, k.dir, "locked", k.private, "made-up phrase")
	if e := k.refused(t); !strings.Contains(e.Error(), "locked: load it with ssh-add") {
		t.Error(e)
	}
	asked := 0
	phrase := "wrong"
	k.opts.Passphrase = func(context.Context, string) ([]byte, error) {
		asked++
		return []byte(phrase), nil
	}
	if e := k.refused(t); !strings.Contains(e.Error(), "does not open it") {
		t.Error(e)
	}
	phrase, asked = "made-up phrase", 0
	d := sshconn.NewDialer(k.opts)
	for range 3 {
		c, err := d.Dial(t.Context(), k.target)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
}

// A locked default key that nobody named is no error while the agent works.
func TestLockedDefaultKey(t *testing.T) {
	k := newKeyring(t)
	home := t.TempDir()
	t.Setenv("HOME", home)
	if err := os.Mkdir(filepath.Join(home, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	sshtest.KeyFile(t, filepath.Join(home, ".ssh"), "id_ed25519", sshtest.NewPrivate(t), "made-up phrase")
	t.Setenv("SSH_AUTH_SOCK", sshtest.Agent(t, k.private))
	k.opts.Passphrase = func(context.Context, string) ([]byte, error) {
		t.Error("asked for the passphrase of a key that nobody named")
		return nil, nil
	}
	dial(t, k.target, k.opts)
}

func TestUserCertificates(t *testing.T) {
	ca, private := sshtest.NewKey(t), sshtest.NewPrivate(t)
	cert := certificate(t, ca, sshtest.Signer(t, private), ssh.UserCert, "ubuntu")
	s := sshtest.Start(t, sshtest.Options{Accept: []ssh.PublicKey{cert}})
	dir := t.TempDir()
	o := options(t)
	tgt := sshconn.Target{Host: s.Host(), Port: s.Port(), User: "ubuntu", IdentityFile: sshtest.KeyFile(t, dir, "id", private, "")}
	sshtest.PublicFile(t, dir, "id-cert.pub", cert)
	dial(t, tgt, o)
	t.Setenv("SSH_AUTH_SOCK", sshtest.Agent(t, private))
	dial(t, tgt, o)
}

// A key that others may read is used, with one warning for all machines.
func TestKeyFileMode(t *testing.T) {
	k := newKeyring(t)
	k.target.IdentityFile = sshtest.KeyFile(t, k.dir, "id", k.private, "")
	if err := os.Chmod(k.target.IdentityFile, 0o644); err != nil {
		t.Fatal(err)
	}
	c := dial(t, k.target, k.opts)
	found := false
	for _, a := range c.Trace() {
		found = found || strings.Contains(a.Answer, "0644")
	}
	if !found {
		t.Errorf("trace %v", c.Trace())
	}
}
