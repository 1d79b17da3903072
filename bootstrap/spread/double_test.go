package spread

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
)

// machine runs scripts here, as a machine would. The listener of serve.sh, which
// needs systemd, is one of this process that runs answer.sh.
type machine struct {
	t   *testing.T
	dir string
	up  atomic.Int64
	// deaf refuses to listen; wrong answers with another secret; cut ends the first upload after so many bytes.
	deaf, wrong bool
	cut         atomic.Int64
	served      atomic.Int32
}

func (m *machine) Run(ctx context.Context, c remote.Cmd) (remote.Result, error) {
	if c.Script == serveScript {
		return remote.Result{}, m.serve(c)
	}
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", c.Script, "sh"}, c.Args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + m.dir}
	for k, v := range c.Env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if c.Stdout != nil {
		cmd.Stdout = c.Stdout
	}
	if c.Stdin != nil {
		in, err := cmd.StdinPipe()
		if err != nil {
			return remote.Result{}, err
		}
		go m.copy(in, c.Stdin)
	}
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return remote.Result{}, &remote.ExitError{Name: c.Name, Code: exit.ExitCode(), Stderr: errs.Bytes()}
	}
	return remote.Result{Stdout: out.Bytes()}, err
}

func (m *machine) copy(in io.WriteCloser, from io.Reader) {
	defer in.Close()
	if limit := m.cut.Swap(0); limit > 0 {
		from = io.LimitReader(from, limit)
	}
	n, _ := io.Copy(in, from)
	m.up.Add(n)
}

// serve listens where it is told, with answer.sh behind.
func (m *machine) serve(c remote.Cmd) error {
	if m.deaf {
		return errors.New("no systemd here")
	}
	secret := filepath.Join(m.dir, "secret")
	text := c.Env["GPUCTL_SECRET"]
	if m.wrong {
		text = "another"
	}
	if err := os.WriteFile(secret, []byte(text), 0o600); err != nil {
		return err
	}
	l, err := net.Listen("tcp", net.JoinHostPort(c.Args[0], c.Args[1]))
	if err != nil {
		return &remote.ExitError{Name: c.Name, Code: exitNoListen}
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go m.answer(conn, secret, c.Args[2])
		}
	}()
	_, _ = io.WriteString(c.Stdout, "ready\n")
	_, err = io.Copy(io.Discard, c.Stdin) // until the client is gone
	return errors.Join(err, l.Close())
}

func (m *machine) answer(conn net.Conn, secret, dir string) {
	defer conn.Close()
	m.served.Add(1)
	file, err := conn.(*net.TCPConn).File()
	if err != nil {
		return
	}
	defer file.Close()
	cmd := exec.Command("sh", "-c", answerScript, "sh", secret, dir)
	cmd.Stdin, cmd.Stdout = file, file
	_ = cmd.Run()
}

// ground is a spreader with machines that share loopback as their private network.
func ground(t *testing.T, names ...string) (*Spreader, []Machine, []*machine) {
	t.Helper()
	s := New(func(string) {})
	var all []Machine
	var raw []*machine
	for i, name := range names {
		m := &machine{t: t, dir: t.TempDir()}
		raw = append(raw, m)
		all = append(all, Machine{Name: name, On: rooted{m}, Address: netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)})})
	}
	t.Cleanup(func() { s.Close(context.Background()) })
	return s, all, raw
}

// rooted gives each machine a folder of its own for Dir, and loopback for its address.
type rooted struct{ *machine }

func (r rooted) Run(ctx context.Context, c remote.Cmd) (remote.Result, error) {
	args := make([]string, len(c.Args))
	for i, a := range c.Args {
		switch {
		case a == Dir || strings.HasPrefix(a, "/opt/"):
			a = filepath.Join(r.dir, a)
		case strings.HasPrefix(a, "10.0.0."), strings.HasPrefix(a, "http://10.0.0."):
			a = strings.Replace(a, "10.0.0.", "127.0.0.", 1)
		}
		args[i] = a
	}
	c.Args = args
	return r.machine.Run(ctx, c)
}

func file(size int) (File, []byte) {
	content := bytes.Repeat([]byte("a large file "), size/13+1)[:size]
	sum := sha256.Sum256(content)
	return File{Name: "k3s", SHA256: hex.EncodeToString(sum[:]), Size: int64(size), Open: func(_ context.Context, offset int64) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content[offset:])), nil
	}}, content
}

func quiet(string, ...any) {}

func (m *machine) has(t *testing.T, path string, want []byte) {
	t.Helper()
	got, err := os.ReadFile(filepath.Join(m.dir, path))
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s: %d bytes, %v; want %d", path, len(got), err, len(want))
	}
}
