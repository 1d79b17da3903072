package remote_test

import (
	"context"
	"errors"
	"net"
	"os/exec"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/bootstrap/remote/remotetest"
)

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{
		"": "''", "plain-1.2_3/x:y=z@%+,": "plain-1.2_3/x:y=z@%+,", "a b": "'a b'", "it's": `'it'\''s'`, "$x": "'$x'", "~": "'~'", "a\nb": "'a\nb'", "ā": "'ā'",
	} {
		if got := remote.Quote(in); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}

// Whatever the words are, a shell reads them back as they were.
func TestQuoteAllIsReadBack(t *testing.T) {
	words := []string{"", " ", "'", "''", `\`, `\'`, "$(id)", "`id`", "*", "~", "#x", "-n", "!", "a\n", "\t", `"`, "{a,b}", "ā"}
	out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", `for w in `+remote.QuoteAll(words...)+`; do printf '%s\0' "$w"; done`).Output()
	if err != nil || string(out) != strings.Join(words, "\x00")+"\x00" {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestTail(t *testing.T) {
	long := strings.Repeat("x", 20_000) + "the secret is hunter2"
	got := string(remote.Tail([]byte(long), []string{"hunter2", ""}))
	if len(got) > 8<<10 || !strings.HasSuffix(got, "the secret is "+remote.Mask) {
		t.Errorf("%d bytes ending in %q", len(got), got[len(got)-30:])
	}
}

func TestErrorTexts(t *testing.T) {
	cause := errors.New("cause")
	for want, err := range map[string]error{
		"gpu-1: probe: exit code 3: last words":                                 &remote.ExitError{Host: "gpu-1", Name: "probe", Code: 3, Stderr: []byte("last words\n")},
		"probe: exit code 1: only stdout":                                       &remote.ExitError{Name: "probe", Code: 1, Stdout: []byte("only stdout\n")},
		"probe: ended by signal KILL":                                           &remote.ExitError{Name: "probe", Code: 137, Signal: "KILL"},
		"gpu-1: install: cut off, result unknown: cause":                        &remote.CutOffError{Host: "gpu-1", Name: "install", Err: cause},
		"gpu-1: install: user ubuntu cannot sudo without a password":            &remote.SudoError{Host: "gpu-1", Name: "install", User: "ubuntu", Kind: remote.SudoPasswordNeeded},
		"install: user u is not root and there is no sudo":                      &remote.SudoError{Name: "install", User: "u", Kind: remote.SudoAbsent},
		"gpu-1: reaching 127.0.0.1:6443 through the machine: cause":             &remote.ForwardingError{Host: "gpu-1", Address: "127.0.0.1:6443", Err: cause},
		"gpu-1: connecting to u@h:22: auth: none of 2 keys was accepted: cause": &remote.ConnectError{Host: "gpu-1", Address: "u@h:22", Kind: remote.Auth, Detail: "none of 2 keys was accepted", Err: cause},
		"gpu-1: connecting: jump host a: a: connecting: refused: cause":         &remote.ConnectError{Host: "gpu-1", Kind: remote.Jump, Detail: "jump host a", Err: &remote.ConnectError{Host: "a", Kind: remote.Refused, Err: cause}},
	} {
		if err.Error() != want {
			t.Errorf("got  %s\nwant %s", err, want)
		}
	}
}

func TestPermanent(t *testing.T) {
	absent := &net.DNSError{IsNotFound: true}
	silent := &net.DNSError{IsTimeout: true}
	cases := []struct {
		err  remote.ConnectError
		want bool
	}{
		{remote.ConnectError{Kind: remote.Refused}, false},
		{remote.ConnectError{Kind: remote.Filtered}, false},
		{remote.ConnectError{Kind: remote.Banner}, false},
		{remote.ConnectError{Kind: remote.Reset}, false},
		{remote.ConnectError{Kind: remote.DNS, Err: absent}, true},
		{remote.ConnectError{Kind: remote.DNS, Err: silent}, false},
		{remote.ConnectError{Kind: remote.HostKey}, true},
		{remote.ConnectError{Kind: remote.Auth}, true},
		{remote.ConnectError{Kind: remote.Config}, true},
		{remote.ConnectError{Kind: remote.NoShell}, true},
		{remote.ConnectError{Kind: remote.Jump, Err: &remote.ConnectError{Kind: remote.Auth}}, true},
		{remote.ConnectError{Kind: remote.Jump, Err: &remote.ConnectError{Kind: remote.Refused}}, false},
	}
	for _, c := range cases {
		if got := c.err.Permanent(); got != c.want {
			t.Errorf("%s %v: got %v", c.err.Kind, c.err.Err, got)
		}
	}
}

func TestFilesThatAreNotSent(t *testing.T) {
	fake := remotetest.New(t) // no command may come
	for _, f := range []remote.File{
		{Path: "relative"}, {Path: "/a/../b"}, {Path: "/"}, {Path: "/a/"},
		{Path: "/a", Reader: strings.NewReader("x")},
		{Path: "/a", SHA256: "xyz"},
		{Path: "/a", Content: []byte("x"), Reader: strings.NewReader("x")},
	} {
		if err := remote.WriteFile(t.Context(), fake, f); err == nil {
			t.Errorf("%+v was taken", f)
		}
	}
}

func TestSecretFileKeepsSilent(t *testing.T) {
	fake := remotetest.New(t)
	fake.Expect("write /etc/token").Exit(1, "the content is hunter2")
	err := remote.WriteFile(t.Context(), fake, remote.File{Path: "/etc/token", Mode: 0o600, Content: []byte("hunter2"), Secret: true})
	if remote.ExitCode(err) != 1 || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
	call := fake.Calls()[0]
	if got := strings.Join(call.Cmd.Args[:3], " "); got != "/etc/token 0600 " || string(call.Stdin) != "hunter2" {
		t.Errorf("args %q, stdin %q", got, call.Stdin)
	}
}

func TestExitCode(t *testing.T) {
	if remote.ExitCode(nil) != 0 || remote.ExitCode(context.Canceled) != -1 || remote.ExitCode(errors.Join(&remote.ExitError{Code: 7})) != 7 {
		t.Error("exit codes")
	}
}
