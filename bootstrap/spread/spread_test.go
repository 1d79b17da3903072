package spread

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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

const target = "/opt/bin/k3s"

// Ten machines get a file that goes up once.
func TestGoesUpOnce(t *testing.T) {
	s, machines, raw := ground(t, "a", "b", "c", "d", "e", "f", "g", "h", "i", "j")
	f, content := file(3 << 20)
	var all sync.WaitGroup
	for _, m := range machines {
		all.Go(func() {
			if err := s.Lay(t.Context(), m, f, Place{Path: target, Mode: "0755"}, quiet); err != nil {
				t.Errorf("%s: %v", m.Name, err)
			}
		})
	}
	all.Wait()
	var up int64
	for _, m := range raw {
		m.has(t, target, content)
		up += m.up.Load()
		if info, err := os.Stat(filepath.Join(m.dir, target)); err == nil && info.Mode().Perm() != 0o755 {
			t.Errorf("mode %o", info.Mode().Perm())
		}
	}
	if up > f.Size+f.Size/10 {
		t.Errorf("%d bytes went up for a file of %d on ten machines", up, f.Size)
	}
	// Again: nothing goes up, and what was kept for others goes with the run.
	if err := s.Lay(t.Context(), machines[3], f, Place{Path: target, Mode: "0755"}, quiet); err != nil {
		t.Error(err)
	}
	s.Close(t.Context())
	for _, m := range raw {
		if left, _ := filepath.Glob(filepath.Join(m.dir, Dir, "*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
}

// Where others cannot fetch, the file goes up to each.
func TestFallsBack(t *testing.T) {
	for name, break1 := range map[string]func([]Machine, []*machine){
		"nobody listens":   func(_ []Machine, raw []*machine) { raw[0].deaf = true },
		"another secret":   func(_ []Machine, raw []*machine) { raw[0].wrong = true },
		"public addresses": func(all []Machine, _ []*machine) { all[0].Address = netip.MustParseAddr("203.0.113.4") },
	} {
		t.Run(name, func(t *testing.T) {
			s, machines, raw := ground(t, "a", "b")
			break1(machines, raw)
			f, content := file(1 << 20)
			for _, m := range machines {
				if err := s.Lay(t.Context(), m, f, Place{Path: target}, quiet); err != nil {
					t.Fatal(err)
				}
			}
			for _, m := range raw {
				m.has(t, target, content)
				if m.up.Load() != f.Size {
					t.Errorf("%d bytes went up", m.up.Load())
				}
			}
		})
	}
}

// An upload that was cut off goes on where it ended; what an earlier run left of
// another file is thrown away.
func TestGoesOn(t *testing.T) {
	s, machines, raw := ground(t, "a")
	f, content := file(1 << 20)
	raw[0].cut.Store(300_000)
	err := s.Lay(t.Context(), machines[0], f, Place{Path: target}, quiet)
	if remote.ExitCode(err) != exitChecksum {
		t.Fatalf("an upload cut short: %v", err)
	}
	part := filepath.Join(raw[0].dir, Dir, f.SHA256+".part")
	if err := os.WriteFile(part, content[:400_000], 0o600); err != nil {
		t.Fatal(err)
	}
	raw[0].up.Store(0)
	if err := s.Lay(t.Context(), machines[0], f, Place{Path: target}, quiet); err != nil {
		t.Fatal(err)
	}
	raw[0].has(t, target, content)
	if up := raw[0].up.Load(); up != f.Size-400_000 {
		t.Errorf("%d bytes went up after 400000 of %d were there", up, f.Size)
	}
	g, other := file(2 << 20)
	if err := os.WriteFile(filepath.Join(raw[0].dir, Dir, g.SHA256+".part"), []byte("something else"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Lay(t.Context(), machines[0], g, Place{Path: target}, quiet); err != nil {
		t.Fatal(err)
	}
	raw[0].has(t, target, other)
}

// A file whose first machine fails goes to another first.
func TestFirstMachineFails(t *testing.T) {
	s, machines, raw := ground(t, "a", "b")
	f, content := file(1 << 20)
	if err := os.WriteFile(filepath.Join(raw[0].dir, "opt"), nil, 0o600); err != nil { // no folder can be there
		t.Fatal(err)
	}
	if err := s.Lay(t.Context(), machines[0], f, Place{Path: target}, quiet); err == nil {
		t.Error("no error")
	}
	if err := s.Lay(t.Context(), machines[1], f, Place{Path: target}, quiet); err != nil {
		t.Fatal(err)
	}
	raw[1].has(t, target, content)
}

// A file that this computer cannot read is that error, not a wrong checksum.
func TestUnreadable(t *testing.T) {
	s, machines, _ := ground(t, "a")
	f, _ := file(1000)
	broken := errors.New("the disk is broken")
	f.Open = func(context.Context, int64) (io.ReadCloser, error) { return nil, broken }
	if err := s.Lay(t.Context(), machines[0], f, Place{Path: target}, quiet); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

// Nothing but a file of the folder is given, and that only to who knows the secret.
func TestAnswers(t *testing.T) {
	m := &machine{t: t, dir: t.TempDir()}
	f, content := file(5000)
	in, out := io.Pipe()
	ready := make(chan struct{})
	go func() {
		_, _ = m.Run(context.Background(), remote.Cmd{
			Script: serveScript, Args: []string{"127.0.0.9", "17998", m.dir}, Env: map[string]string{"GPUCTL_SECRET": "hush"},
			Stdin: in, Stdout: &firstWord{word: "ready\n", then: func() { close(ready) }},
		})
	}()
	defer out.Close()
	if err := os.WriteFile(filepath.Join(m.dir, f.SHA256), content, 0o600); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ready:
	case <-time.After(10 * time.Second):
		t.Fatal("nobody listens")
	}
	for _, c := range []struct {
		method, path, secret, span string
		status, length             int
	}{
		{"GET", "/" + f.SHA256, "Bearer hush", "", 200, 5000},
		{"GET", "/" + f.SHA256, "Bearer hush", "bytes=4000-", 206, 1000},
		{"GET", "/" + f.SHA256, "Bearer hush", "bytes=5000-", 416, 0},
		{"GET", "/" + f.SHA256, "Bearer hush", "bytes=$(id)-", 416, 0},
		{"GET", "/" + f.SHA256, "Bearer no", "", 401, 0},
		{"GET", "/" + f.SHA256, "", "", 401, 0},
		{"POST", "/" + f.SHA256, "Bearer hush", "", 405, 0},
		{"GET", "/secret", "Bearer hush", "", 404, 0},
		{"GET", "/../../../etc/passwd", "Bearer hush", "", 404, 0},
		{"GET", "/" + strings.Repeat("0", 64), "Bearer hush", "", 404, 0},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, "http://127.0.0.9:17998", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.URL.Opaque = c.path
		req.Header.Set("Authorization", c.secret)
		if c.span != "" {
			req.Header.Set("Range", c.span)
		}
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Errorf("%s %s: %v", c.method, c.path, err)
			continue
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != c.status || len(body) != c.length {
			t.Errorf("%s %s %q: %s, %d bytes, %v; want %d, %d", c.method, c.path, c.span, resp.Status, len(body), err, c.status, c.length)
		}
	}
}

func TestPrivate(t *testing.T) {
	for text, want := range map[string]bool{
		"10.1.2.3": true, "192.168.0.9": true, "100.64.0.1": true, "fd00::1": true,
		"203.0.113.9": false, "2001:db8::1": false, "127.0.0.1": false, "100.128.0.1": false,
	} {
		if got := Private(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	if Private(netip.Addr{}) {
		t.Error("no address is private")
	}
}
