package sshconn

import (
	"crypto/ed25519"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

func policyFor(t testing.TB, file, host string, port int) *keyPolicy {
	t.Helper()
	p, err := newKeyPolicy(Target{}, &settings{hostName: host, port: port}, &Options{KnownHosts: file, Strict: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func keyOf(t testing.TB, line string) ssh.PublicKey {
	t.Helper()
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// seededKey is a key that is always the same.
func seededKey(t testing.TB, seed byte) ssh.PublicKey {
	t.Helper()
	private := ed25519.NewKeyFromSeed([]byte(strings.Repeat(string(seed), ed25519.SeedSize)))
	key, err := ssh.NewPublicKey(private.Public())
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// k0sproject/k0sctl#461: bracketed IPv6 without a port, SSH-1, cut and junk lines.
func TestOldLinesCostOnlyTheirHost(t *testing.T) {
	const file = "testdata/known_hosts_old_lines"
	gpu1 := keyOf(t, "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA8gD8avMunuIr3zym68xK4MlOiDKjSIqYDwCdLeH1i1")
	for _, host := range []string{"gpu-1.example.net", "203.0.113.31"} {
		if err := policyFor(t, file, host, 22).judge(gpu1); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
	six := keyOf(t, "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAII4CkC/vLya1qnFwE1J8bRSjsDy4/Y3jxMfu9qfb2Ihz")
	if err := policyFor(t, file, "2001:db8:13:2fc::21", 2222).judge(six); err != nil {
		t.Error(err)
	}
	if err := policyFor(t, file, "203.0.113.40", 22).judge(gpu1); err == nil {
		t.Error("a cut line lets a key in")
	}
}

func TestRecordedLines(t *testing.T) {
	file := filepath.Join(t.TempDir(), "known_hosts")
	if err := os.WriteFile(file, []byte("# no newline at the end"), 0o600); err != nil {
		t.Fatal(err)
	}
	key := seededKey(t, 1)
	for range 2 {
		for _, s := range []settings{{hostName: "2001:db8::5", port: 22}, {hostName: "2001:db8::5", port: 2222}, {hostName: "h", port: 22, hostKeyAlias: "alias"}} {
			if err := recordKey(file, keyName(&s), key); err != nil {
				t.Fatal(err)
			}
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		names = append(names, strings.Fields(line)[0])
	}
	if got := strings.Join(names, " "); got != "# 2001:db8::5 [2001:db8::5]:2222 alias" {
		t.Errorf("got %q", got)
	}
}

// vitobotta/hetzner-k3s#3 with hashed names: found by hashing, named by line.
func TestChangedKeyInHashedFile(t *testing.T) {
	p := policyFor(t, "testdata/known_hosts_hashed", "198.51.100.77", 22)
	fresh := seededKey(t, 2)
	err := p.judge(fresh)
	if err == nil || !strings.Contains(err.Error(), "known_hosts_hashed:1)") || strings.Contains(err.Error(), "hashed:2)") {
		t.Errorf("got %v, want line 1 and no other", err)
	}
	if err != nil && !strings.Contains(err.Error(), ssh.FingerprintSHA256(fresh)) {
		t.Errorf("the offered fingerprint is missing: %v", err)
	}
	if !strings.Contains(p.hint, "ssh-keygen -f testdata/known_hosts_hashed -R 198.51.100.77") {
		t.Errorf("hint %q", p.hint)
	}
}

// A file that cannot be read at all costs itself, not the others.
func TestUnreadableFile(t *testing.T) {
	junk := filepath.Join(t.TempDir(), "junk")
	if err := os.WriteFile(junk, []byte("no line\nof this\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var warned []string
	db := openKnownHosts([]string{junk, "testdata/known_hosts_hashed", "/absent", ""}, func(f string, _ error) { warned = append(warned, f) })
	if len(warned) != 1 || warned[0] != junk || len(db.HostKeys("198.51.100.77:22")) != 1 {
		t.Errorf("warned of %v", warned)
	}
}

func FuzzKnownHosts(f *testing.F) {
	for _, name := range []string{"known_hosts_old_lines", "known_hosts_hashed"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, "198.51.100.77")
	}
	f.Add([]byte("@revoked * ssh-ed25519 x\n* ssh-ed25519 AAAA\n|1|a|b ssh-rsa x\n"), "h")
	stranger := seededKey(f, 3)
	f.Fuzz(func(t *testing.T, text []byte, host string) {
		if CheckHost(host) != nil {
			return
		}
		file := filepath.Join(t.TempDir(), "known_hosts")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		p := policyFor(t, file, host, 22)
		if len(p.algorithms()) == 0 {
			t.Error("no algorithm left")
		}
		if err := p.judge(stranger); err == nil && !strings.Contains(string(text), "AAAA") {
			t.Error("a strict policy took a key that no line holds")
		}
	})
}
