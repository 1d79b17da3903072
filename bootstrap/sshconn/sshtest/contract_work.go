//go:build unix

package sshtest

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
)

// contractGivenUp: whatever ends a command early, nothing of it stays behind.
func contractGivenUp(t *testing.T, h remote.Host) {
	for _, sudo := range []bool{false, true} {
		t.Run("timeout", func(t *testing.T) {
			if err := startTree(t.Context(), t, h, sudo, time.Second, nil); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want the deadline", err)
			}
		})
		t.Run("cancelled", func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			if err := startTree(ctx, t, h, sudo, 0, cancel); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want the cancellation", err)
			}
		})
	}
	t.Run("before", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := h.Run(ctx, remote.Cmd{Name: "never", Script: "true"})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want the cancellation", err)
		}
	})
	t.Run("input breaks", func(t *testing.T) {
		broken := io.MultiReader(strings.NewReader("half"), brokenReader{})
		_, err := h.Run(t.Context(), remote.Cmd{Name: "input", Script: "cat >/dev/null; echo whole", Stdin: broken})
		var cut *remote.CutOffError
		if !errors.As(err, &cut) || !errors.Is(err, io.ErrNoProgress) {
			t.Errorf("got %v, want a cut-off by the reader's error", err)
		}
	})
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrNoProgress }

// startTree runs a script with a child and a grandchild that ignores SIGTERM,
// lets it be given up, and checks that all of them are gone.
func startTree(ctx context.Context, t *testing.T, h remote.Host, sudo bool, timeout time.Duration, then func()) error {
	t.Helper()
	pids := &firstLine{came: then}
	_, err := h.Run(ctx, remote.Cmd{
		Name: "tree", Sudo: sudo, Timeout: timeout, Stdout: pids,
		Script: `sleep 300 &
a=$!
sh -c 'trap "" TERM; sleep 300; sleep 300' &
echo "$$ $a $!"
wait`,
	})
	var cut *remote.CutOffError
	if !errors.As(err, &cut) {
		t.Fatalf("got %v, want a cut-off", err)
	}
	if pids.line() == "" {
		t.Fatal("the script did not get as far as its first line")
	}
	alive := run(t, h, remote.Cmd{Args: strings.Fields(pids.line()), Script: `for p in "$@"; do
	state=gone
	[ ! -r "/proc/$p/stat" ] || read -r _ _ state _ <"/proc/$p/stat"
	case $state in gone | Z) ;; *) echo "$p $state" ;; esac
done`})
	if alive != "" {
		t.Errorf("still running: %q of %q", alive, pids.line())
	}
	return err
}

// firstLine tells when the first line has come.
type firstLine struct {
	buf  bytes.Buffer
	came func()
}

func (f *firstLine) Write(p []byte) (int, error) {
	f.buf.Write(p)
	if f.came != nil && bytes.ContainsRune(p, '\n') {
		f.came()
	}
	return len(p), nil
}

func (f *firstLine) line() string { return strings.TrimSpace(f.buf.String()) }

func contractFiles(t *testing.T, h remote.Host) {
	ctx := t.Context()
	dir := strings.TrimSpace(run(t, h, remote.Cmd{Script: "mktemp -d", Sudo: true}))
	defer run(t, h, remote.Cmd{Script: `rm -r "$1"`, Args: []string{dir}, Sudo: true})
	path := dir + "/new dir/it's a file"
	big := bytes.Repeat([]byte("0123456789abcde\n"), 1<<16)
	for _, content := range [][]byte{nil, []byte("first\x00\xff\n"), big} {
		f := remote.File{Path: path, Mode: 0o640, DirMode: 0o700, Owner: "root:root", Content: content, Sudo: true}
		if err := remote.WriteFile(ctx, h, f); err != nil {
			t.Fatal(err)
		}
		got, err := remote.ReadFile(ctx, h, path, true)
		if err != nil || !bytes.Equal(got, content) {
			t.Errorf("read back %d bytes of %d: %v", len(got), len(content), err)
		}
	}
	got := run(t, h, remote.Cmd{Script: `stat -c '%a %U' "$1" "${1%/*}"; ls -A "${1%/*}"`, Args: []string{path}, Sudo: true})
	if got != "640 root\n700 root\nit's a file\n" {
		t.Errorf("mode, owner and neighbours: %q", got)
	}
	wrong := remote.File{Path: path, Content: []byte("other"), SHA256: strings.Repeat("0", 64), Sudo: true}
	err := remote.WriteFile(ctx, h, wrong)
	if remote.ExitCode(err) != 1 || !strings.Contains(err.Error(), "checksum") {
		t.Errorf("wrong checksum: %v", err)
	}
	if got, err := remote.ReadFile(ctx, h, path, true); err != nil || !bytes.Equal(got, big) {
		t.Errorf("the old file is not whole after a failed write: %d bytes, %v", len(got), err)
	}
	if _, err := remote.ReadFile(ctx, h, dir+"/absent", true); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent file: %v", err)
	}
}

// contractDial reaches the machine's own sshd through the machine.
func contractDial(t *testing.T, h remote.Host) {
	address := run(t, h, remote.Cmd{Script: `set -- $SSH_CONNECTION; printf '%s:%s' "$3" "$4"`})
	conn, err := h.Dial(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	greeting := make([]byte, 4)
	if _, err := io.ReadFull(conn, greeting); err != nil || string(greeting) != "SSH-" {
		t.Errorf("greeting %q: %v", greeting, err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	if conn, err := h.Dial(t.Context(), "tcp", "127.0.0.1:1"); err == nil {
		_ = conn.Close()
		t.Error("port 1 of the machine was reached")
	}
	// Deadlines are what TLS clients need of a connection.
	conn, err = h.Dial(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := tls.Client(conn, &tls.Config{ServerName: "x", MinVersion: tls.VersionTLS13}).HandshakeContext(ctx); err == nil {
		t.Error("an SSH server finished a TLS handshake")
	}
}
