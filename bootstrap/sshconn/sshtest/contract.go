//go:build unix

package sshtest

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
)

// Contract is what every remote.Host must keep, whatever the login shell and
// the server. connect returns a fresh connection as a user that can become
// root, on a machine whose sshd sets SSH_CONNECTION.
func Contract(t *testing.T, connect func(t *testing.T) remote.Host) {
	host := connect(t)
	t.Run("scripts", func(t *testing.T) { contractScripts(t, host) })
	t.Run("words", func(t *testing.T) { contractWords(t, host) })
	t.Run("streams", func(t *testing.T) { contractStreams(t, host) })
	t.Run("surroundings", func(t *testing.T) { contractSurroundings(t, host) })
	t.Run("secrets", func(t *testing.T) { contractSecrets(t, host) })
	t.Run("many at once", func(t *testing.T) { contractParallel(t, host) })
	t.Run("given up", func(t *testing.T) { contractGivenUp(t, host) })
	t.Run("files", func(t *testing.T) { contractFiles(t, host) })
	t.Run("dial", func(t *testing.T) { contractDial(t, host) })
	t.Run("closed", func(t *testing.T) { contractClosed(t, host) })
}

// run runs a command that must succeed and returns its output.
func run(t *testing.T, h remote.Runner, c remote.Cmd) string {
	t.Helper()
	if c.Name == "" {
		c.Name = "test"
	}
	res, err := h.Run(context.Background(), c)
	if err != nil {
		t.Fatalf("%s: %v (stderr %q)", c.Name, err, res.Stderr)
	}
	return string(res.Stdout)
}

// probeScript is what fish and tcsh cannot read as a command line
// (loft-sh/devpod-provider-ssh#39, ShunmeiCho/cc-clip#98).
const probeScript = `X='a b'
printf '%s\n' "$X"
sed -n 's/\(x\)/[\1]/p' <<EOF
axb
EOF
if [ -d /etc ]; then echo "posix ok"; fi
exit 3
`

func contractScripts(t *testing.T, h remote.Host) {
	long := strings.Repeat("# "+strings.Repeat("x", 98)+"\n", 600) + "echo end"
	cases := []struct {
		name, script, stdout string
		code                 int
	}{
		{"probe", probeScript, "a b\na[x]b\nposix ok\n", 3},
		{"nothing", "", "", 0},
		{"no final newline", "printf x", "x", 0},
		{"backslashes", `printf '%s' "a\\\\b" '\\'`, `a\\b\\`, 0},
		{"not ASCII", "printf %s 'ā é ✓ \u2028'", "ā é ✓ \u2028", 0},
		{"exclamation", "echo '!!' !x", "!! !x\n", 0},
		{"exec", "exec echo hi", "hi\n", 0},
		{"set -e", "set -eu\nfalse\necho no", "", 1},
		{"trap", "trap 'echo bye' EXIT\nexit 4", "bye\n", 4},
		{"missing program", "no-such-program-here", "", 127},
		{"looks like the wire", "echo gpuctl:exit 9\necho gpuctl:", "gpuctl:exit 9\ngpuctl:\n", 0},
		{"600 lines", long, "end\n", 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			res, err := h.Run(t.Context(), remote.Cmd{Name: c.name, Script: c.script})
			if code := remote.ExitCode(err); code != c.code {
				t.Errorf("exit code %d, want %d (%v)", code, c.code, err)
			}
			if string(res.Stdout) != c.stdout {
				t.Errorf("stdout %q, want %q", res.Stdout, c.stdout)
			}
		})
	}
	t.Run("syntax error", func(t *testing.T) {
		_, err := h.Run(t.Context(), remote.Cmd{Name: "broken", Script: "echo (((\nif"})
		var exit *remote.ExitError
		if !errors.As(err, &exit) || exit.Code == 0 || len(exit.Stderr) == 0 {
			t.Errorf("got %v, want an exit code and the shell's words", err)
		}
	})
	t.Run("killed", func(t *testing.T) {
		_, err := h.Run(t.Context(), remote.Cmd{Name: "killed", Script: "kill -KILL $$"})
		var exit *remote.ExitError
		if !errors.As(err, &exit) || exit.Code == 0 {
			t.Errorf("got %v, want an exit error", err)
		}
	})
	t.Run("a child keeps the streams", func(t *testing.T) {
		pid := strings.TrimSpace(run(t, h, remote.Cmd{Script: "sleep 60 & echo $!"}))
		run(t, h, remote.Cmd{Script: `kill "$1"`, Args: []string{pid}})
	})
}

func contractWords(t *testing.T, h remote.Host) {
	words := []string{"a b", "", "'", `"`, `\`, `\\`, "$HOME", "`id`", "!x", "*", "a\nb\n", "-n", "ā", "~", "{a,b}", ";", "#"}
	script := `for a in "$@"; do printf '%s\0' "$a"; done; printf '%s\0' "$GPUCTL_T"`
	for _, sudo := range []bool{false, true} {
		got := run(t, h, remote.Cmd{Script: script, Args: words, Env: map[string]string{"GPUCTL_T": strings.Join(words, " ")}, Sudo: sudo})
		want := strings.Join(words, "\x00") + "\x00" + strings.Join(words, " ") + "\x00"
		if got != want {
			t.Errorf("sudo %v: got %q, want %q", sudo, got, want)
		}
	}
	_, err := h.Run(t.Context(), remote.Cmd{Name: "bad", Script: "true", Env: map[string]string{"a b": "x"}})
	if err == nil {
		t.Error("a variable name with a blank was taken")
	}
}

func contractStreams(t *testing.T, h remote.Host) {
	data := make([]byte, 3<<20)
	if _, err := rand.Read(data); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	got := run(t, h, remote.Cmd{Script: "sha256sum", Stdin: bytes.NewReader(data)})
	if !strings.HasPrefix(got, hex.EncodeToString(sum[:])) {
		t.Errorf("3 MiB on stdin arrived as %q", got)
	}
	got = run(t, h, remote.Cmd{Script: "exec cat", Stdin: bytes.NewReader(data)})
	if got != string(data) {
		t.Errorf("3 MiB there and back: %d bytes differ from what was sent", len(got))
	}
	var stream bytes.Buffer
	if rest := run(t, h, remote.Cmd{Script: "cat", Stdin: bytes.NewReader(data), Stdout: &stream}); rest != "" || !bytes.Equal(stream.Bytes(), data) {
		t.Errorf("streamed %d bytes, %d in the result", stream.Len(), len(rest))
	}
	if got = run(t, h, remote.Cmd{Script: "cat; echo end"}); got != "end\n" {
		t.Errorf("without stdin: %q", got)
	}
	res, err := h.Run(t.Context(), remote.Cmd{Name: "apart", Script: "echo out; echo err >&2; exit 5"})
	var exit *remote.ExitError
	if !errors.As(err, &exit) || string(res.Stdout) != "out\n" || string(res.Stderr) != "err\n" || string(exit.Stderr) != "err\n" {
		t.Errorf("streams apart: %q %q %v", res.Stdout, res.Stderr, err)
	}
	_, err = h.Run(t.Context(), remote.Cmd{Name: "too long", Script: "yes", MaxOutput: 1000})
	var cut *remote.CutOffError
	if !errors.As(err, &cut) {
		t.Errorf("endless output: got %v, want a cut-off", err)
	}
	if got = run(t, h, remote.Cmd{Script: "true", Stdin: bytes.NewReader(data)}); got != "" {
		t.Errorf("a script that reads nothing: %q", got)
	}
}

func contractSurroundings(t *testing.T, h remote.Host) {
	got := run(t, h, remote.Cmd{Script: `pwd; umask; echo "$LC_ALL"; id -u`, Sudo: true})
	if got != "/\n0022\nC\n0\n" {
		t.Errorf("directory, umask, locale, user: %q", got)
	}
	if got = run(t, h, remote.Cmd{Script: `case :$PATH: in *:/usr/sbin:*) echo yes;; esac`}); got != "yes\n" {
		t.Error("/usr/sbin is not in PATH")
	}
}

func contractSecrets(t *testing.T, h remote.Host) {
	const secret = "hunter2-made-up"
	c := remote.Cmd{
		Name: "secret", Env: map[string]string{"TOKEN": secret}, Secrets: []string{secret}, Sudo: true,
		Script: `for p in /proc/[0-9]*/cmdline; do tr '\0' ' ' <"$p"; done 2>/dev/null | grep -c 'hunter2-made-[u]p'
echo "failed with $TOKEN" >&2
exit 1`,
	}
	res, err := h.Run(t.Context(), c)
	if string(res.Stdout) != "0\n" {
		t.Errorf("processes that show the secret: %s", res.Stdout)
	}
	if err == nil || strings.Contains(err.Error(), secret) || !strings.Contains(err.Error(), remote.Mask) {
		t.Errorf("error text: %v", err)
	}
}

func contractParallel(t *testing.T, h remote.Host) {
	var wg sync.WaitGroup
	for i := range 25 {
		wg.Go(func() {
			res, err := h.Run(t.Context(), remote.Cmd{Name: "parallel", Script: `echo "$1"`, Args: []string{fmt.Sprint(i)}, Sudo: i%2 == 0})
			if err != nil || string(res.Stdout) != fmt.Sprintf("%d\n", i) {
				t.Errorf("command %d: %q %v", i, res.Stdout, err)
			}
		})
	}
	wg.Wait()
}

func contractClosed(t *testing.T, h remote.Host) {
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := h.Run(t.Context(), remote.Cmd{Name: "late", Script: "true"})
	var connect *remote.ConnectError
	if !errors.As(err, &connect) {
		t.Errorf("after close: got %v, want a connect error", err)
	}
	if err := h.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
}
