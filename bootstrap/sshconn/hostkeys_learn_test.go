package sshconn

import (
	"crypto/ed25519"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
)

// hostLine is a line of known_hosts with a key made of a seed.
func hostLine(t *testing.T, name string, seed byte) string {
	t.Helper()
	private := ed25519.NewKeyFromSeed([]byte(strings.Repeat(string(rune('a'+seed)), ed25519.SeedSize)))
	key, err := ssh.NewPublicKey(private.Public())
	if err != nil {
		t.Fatal(err)
	}
	return knownhosts.Line([]string{name}, key)
}

func TestLearnKey(t *testing.T) {
	one, other, third := hostLine(t, "203.0.113.7", 1), hostLine(t, "203.0.113.7", 2), hostLine(t, "[203.0.113.8]:2222", 3)
	for name, c := range map[string]struct {
		have, line string
		replace    bool
		want       Learned
		after      string
	}{
		"no file yet":         {"", one, false, LearnedNew, one + "\n"},
		"known":               {third + "\n" + one + "\n", one, false, LearnedKnown, third + "\n" + one + "\n"},
		"another machine":     {one, third, false, LearnedNew, one + "\n" + third + "\n"},
		"conflict":            {one + "\n", other, false, LearnedConflict, one + "\n"},
		"replaced":            {one + "\n" + third + "\n", other, true, LearnedReplaced, third + "\n" + other + "\n"},
		"a comment of a name": {"# mine\n", one + " gpu-1", false, LearnedNew, "# mine\n" + one + "\n"},
		"a revocation stays":  {"@revoked " + one + "\n", other, true, LearnedNew, "@revoked " + one + "\n" + other + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "known_hosts")
			if c.have != "" {
				if err := os.WriteFile(file, []byte(c.have), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := LearnKey(file, c.line, c.replace)
			if err != nil || got != c.want {
				t.Errorf("%q, %v; want %q", got, err, c.want)
			}
			if data, err := os.ReadFile(file); err != nil || string(data) != c.after {
				t.Errorf("the file says (%v)\n%swant\n%s", err, data, c.after)
			}
		})
	}
}

func TestLearnKeyRefusesWhatIsNoPlainLine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "known_hosts")
	key := strings.TrimPrefix(hostLine(t, "a", 1), "a ")
	for _, line := range []string{"", "nonsense", "a,b " + key, "*.example " + key, "@cert-authority a " + key, "a " + key + "\nb " + key, "|1|c2FsdA==|aGFzaA== " + key} {
		if got, err := LearnKey(file, line, true); err == nil {
			t.Errorf("%q was taken: %s", line, got)
		}
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("a file was written: %v", err)
	}
}

func FuzzLearnKey(f *testing.F) {
	f.Add("203.0.113.7 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA==")
	f.Fuzz(func(t *testing.T, line string) {
		file := filepath.Join(t.TempDir(), "known_hosts")
		if _, err := LearnKey(file, line, false); err != nil {
			return
		}
		data, err := os.ReadFile(file)
		if err != nil || strings.Count(string(data), "\n") != 1 || strings.ContainsAny(strings.Fields(string(data))[0], "*?!|,@") {
			t.Errorf("%q became %q, %v", line, data, err)
		}
	})
}
