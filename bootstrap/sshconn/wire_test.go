package sshconn

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
)

// What every login shell reads alike: tcsh knows no line break in quotes and
// expands "!", fish halves backslashes.
func TestLoginLine(t *testing.T) {
	if strings.ContainsAny(loginLine, "\n!\\") || strings.Count(loginLine, "'") != 2 {
		t.Errorf("login line: %s", loginLine)
	}
}

// Nothing of a command may stand before its loader but the way to root.
func TestEncodeIsTheSameButForItsParts(t *testing.T) {
	c := remote.Cmd{Name: "x", Script: "echo hi", Args: []string{"a b"}, Env: map[string]string{"T": "s'ecret"}}
	mark := "\x1emark"
	plain, err := encode(c, mark, sudoRoot, "")
	if err != nil {
		t.Fatal(err)
	}
	c.Sudo = true
	for mode, head := range map[sudoMode]string{
		sudoRoot:     "",
		sudoFree:     "gpuctl:exec sudo -n -- /bin/sh -c '" + loop + "'\n",
		sudoPassword: "gpuctl:exec sudo -S -p '' -- /bin/sh -c '" + loop + "'\npw\n",
	} {
		got, err := encode(c, mark, mode, "pw")
		if err != nil || string(got) != head+string(plain) {
			t.Errorf("%s: %q %v", mode, got, err)
		}
	}
	if !strings.Contains(string(plain), `export T='s'\''ecret'`) || !strings.HasSuffix(string(plain), "echo hi\n"+mark+".\n") {
		t.Errorf("got %q", plain)
	}
}

func TestPasswordsThatCannotBeSent(t *testing.T) {
	for _, p := range []string{"a\nb", "a\rb", "a\x00b", "gpuctl:id"} {
		if checkPassword(p) == nil {
			t.Errorf("%q was taken", p)
		}
	}
}

// sudo's words, from old and new sudo, sudo-rs and translations. Only where a
// password was tried do they decide, and only the rule that forbids is told apart.
func TestRefusedKind(t *testing.T) {
	for text, want := range map[string]remote.SudoKind{
		"ubuntu is not in the sudoers file.":                                     remote.SudoNotAllowed,
		"Sorry, user ubuntu may not run sudo on gpu-1.":                          remote.SudoNotAllowed,
		"sudo: sorry, you must have a tty to run sudo":                           remote.SudoNotAllowed,
		"Sorry, try again.\nsudo: no password was provided":                      remote.SudoWrongPassword,
		"sudo: Authentication failed, try again.":                                remote.SudoWrongPassword,
		"[sudo] senha para ubuntu:":                                              remote.SudoWrongPassword,
		"sudo: unable to resolve host gpu-1: Name or service not known\nSorry..": remote.SudoWrongPassword,
	} {
		if got := refusedKind(text); got != want {
			t.Errorf("%q: %s", text, got)
		}
	}
}

// cut feeds a stream in pieces and returns what the script printed and what was noise.
func cut(stream []byte, sizes []int) (data, noise string, headers []string) {
	var out bytes.Buffer
	f := frames{
		mark: []byte("\x1emark"), noise: capture{limit: noiseLimit},
		header: func(w []string) { headers = append(headers, strings.Join(w, " ")) },
		data:   func(p []byte) error { out.Write(p); return nil },
	}
	for _, n := range sizes {
		n = min(n, len(stream))
		_ = f.feed(stream[:n]) // data never fails here
		stream = stream[n:]
	}
	_ = f.feed(stream)
	_ = f.finish()
	return out.String(), string(f.noise.bytes()), headers
}

func TestFrames(t *testing.T) {
	m := "\x1emark"
	cases := []struct{ name, stream, data, noise, headers string }{
		{"noise on both sides", "motd\n" + m + "run 1\npayload\n" + m + "end\nbye", "payload\n", "motd\n", "run 1,end"},
		{"no newline at the end", m + "run 1\nx" + m + "end\n", "x", "", "run 1,end"},
		{"empty", m + "run 1\n" + m + "end\n", "", "", "run 1,end"},
		{"sudo first", "n1" + m + "sudo free\nn2" + m + "run 1\nx" + m + "end\n", "x", "n1n2", "sudo free,run 1,end"},
		{"half a mark is data", m + "run 1\n\x1emar\x1e\x1emarx" + m + "end\n", "\x1emar\x1e\x1emarx", "", "run 1,end"},
		{"cut off in data", m + "run 1\nhalf\x1ema", "half\x1ema", "", "run 1"},
		{"never ran", "This account is currently not available.\n", "", "This account is currently not available.\n", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for size := 1; size <= len(c.stream); size++ {
				data, noise, headers := cut([]byte(c.stream), slices.Repeat([]int{size}, len(c.stream)))
				if data != c.data || noise != c.noise || strings.Join(headers, ",") != c.headers {
					t.Fatalf("pieces of %d: %q %q %q", size, data, noise, headers)
				}
			}
		})
	}
}

// However the stream is cut in pieces, the result is the same.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("a\x1emarkrun 1\nb\x1emark\x1emarkend\nc"), uint64(1))
	f.Add([]byte("\x1emarkrun\n\x1e\x1emar\x1emarkend"), uint64(2))
	f.Fuzz(func(t *testing.T, stream []byte, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 1))
		var sizes []int
		for range stream {
			sizes = append(sizes, r.IntN(8))
		}
		d1, n1, h1 := cut(stream, nil)
		d2, n2, h2 := cut(stream, sizes)
		if d1 != d2 || n1 != n2 || !slices.Equal(h1, h2) {
			t.Errorf("whole: %q %q %q, pieces: %q %q %q", d1, n1, h1, d2, n2, h2)
		}
	})
}

// Case 020: the exit code of sudo -n says that it needs a password; only a rule
// against the user, or no sudo at all, is another matter.
func TestNeededKindCase020(t *testing.T) {
	for text, want := range map[string]remote.SudoKind{
		"":                             remote.SudoPasswordNeeded,
		"sudo: a password is required": remote.SudoPasswordNeeded,
		"sudo: interactive authentication is required":                                      remote.SudoPasswordNeeded,
		"[sudo] senha para ubuntu:":                                                         remote.SudoPasswordNeeded,
		"sudo: unable to resolve host gpu-1: Name or service not known":                     remote.SudoPasswordNeeded,
		"ubuntu is not in the sudoers file.":                                                remote.SudoNotAllowed,
		"sudo: unable to resolve host gpu-1\nSorry, user ubuntu may not run sudo on gpu-1.": remote.SudoNotAllowed,
		"bash: line 1: sudo: command not found":                                             remote.SudoAbsent,
	} {
		if got := neededKind(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
