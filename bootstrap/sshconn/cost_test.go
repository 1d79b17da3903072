//go:build unix

package sshconn_test

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/bootstrap/sshconn"
	"github.com/gpuctl/gpuctl/bootstrap/sshconn/sshtest"
)

// One connection and one command line for each command, whatever it carries.
func TestCost(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{})
	c := dial(t, target(t, s), options(t))
	for i := range 3 {
		cmd := remote.Cmd{Name: "x", Script: "cat", Args: []string{fmt.Sprint(i)}, Stdin: bytes.NewReader(make([]byte, 100_000)), Sudo: i > 0}
		if _, err := c.Run(t.Context(), cmd); err != nil {
			t.Fatal(err)
		}
	}
	if err := remote.WriteFile(t.Context(), c, remote.File{Path: t.TempDir() + "/f", Content: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	got := c.Stats()
	if got.Connections != 1 || got.Commands != 4 || s.Connections.Load() != 1 {
		t.Errorf("got %+v", got)
	}
	if got.BytesUp < 300_000 || got.BytesUp > 350_000 || got.BytesDown < 300_000 || got.BytesDown > 350_000 {
		t.Errorf("bytes %+v", got)
	}
	lines := s.CommandLines()
	for _, l := range lines {
		if l != lines[0] {
			t.Errorf("command lines differ: %q", l)
		}
	}
}

// sshd refuses the eleventh session of a connection; more commands wait.
func TestSessionsStayBelowTheLimit(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{})
	c := dial(t, target(t, s), options(t))
	gate := make(chan struct{})
	full := make(chan struct{})
	var reached, wg sync.WaitGroup
	reached.Add(9)
	for range 20 {
		wg.Go(func() {
			first := true
			_, err := c.Run(t.Context(), remote.Cmd{Name: "x", Script: "echo; cat", Stdin: gateReader(gate), Stdout: writer(func([]byte) {
				if first {
					first = false
					select {
					case <-full:
					default:
						reached.Done()
					}
				}
			})})
			if err != nil {
				t.Error(err)
			}
		})
	}
	reached.Wait()
	close(full)
	close(gate)
	wg.Wait()
	// The server may count a session a moment longer than the client does.
	if got := s.MaxSessions.Load(); got < 9 || got > 10 {
		t.Errorf("%d sessions at once, want 9 and never an eleventh", got)
	}
}

// A hardened sshd allows fewer; commands wait for each other.
func TestLowMaxSessions(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{MaxSessions: 2})
	c := dial(t, target(t, s), options(t))
	var wg sync.WaitGroup
	for range 12 {
		wg.Go(func() {
			if _, err := c.Run(t.Context(), remote.Cmd{Name: "x", Script: "true"}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// gateReader ends when the channel is closed.
type gateReader chan struct{}

func (g gateReader) Read([]byte) (int, error) {
	<-g
	return 0, io.EOF
}

// Machines do not wait for each other: all of them are busy at the same time.
func TestMachinesAreIndependent(t *testing.T) {
	const n = 12
	d := sshconn.NewDialer(options(t))
	gate := make(chan struct{})
	var busy, wg sync.WaitGroup
	busy.Add(n)
	for range n {
		tgt := target(t, sshtest.Start(t, sshtest.Options{}))
		wg.Go(func() {
			c, err := d.Dial(t.Context(), tgt)
			if err != nil {
				t.Error(err)
				busy.Done()
				return
			}
			var once sync.Once
			_, err = c.Run(t.Context(), remote.Cmd{Name: "x", Sudo: true, Script: "echo; cat", Stdin: gateReader(gate), Stdout: writer(func([]byte) { once.Do(busy.Done) })})
			if err != nil {
				t.Error(err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	busy.Wait()
	close(gate)
	wg.Wait()
}

// BenchmarkRoundTrips prints round trips of a login and of its first command
// at 50 ms, beside their floor: the login of the library takes 7, of which the
// TCP handshake is not delayed here; a command takes one for the channel and
// one for its output. What is above is computing.
func BenchmarkRoundTrips(b *testing.B) {
	const rtt = 50 * time.Millisecond
	key := sshtest.KeyFile(b, b.TempDir(), "id", sshtest.NewPrivate(b), "")
	s := sshtest.Start(b, sshtest.Options{Latency: rtt / 2})
	tgt := sshconn.Target{Host: s.Host(), Port: s.Port(), User: "ubuntu", IdentityFile: key}
	script := remote.Cmd{Name: "x", Script: "cat", Sudo: false}
	var login, command time.Duration
	for b.Loop() {
		begin := time.Now()
		c, err := sshconn.Dial(b.Context(), tgt, sshconn.Options{ConfigFile: "none"})
		if err != nil {
			b.Fatal(err)
		}
		login += time.Since(begin)
		begin = time.Now()
		if _, err := c.Run(b.Context(), script); err != nil {
			b.Fatal(err)
		}
		command += time.Since(begin)
		if err := c.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(login.Seconds()/rtt.Seconds()/float64(b.N), "login-rtt")
	b.ReportMetric(6, "login-floor")
	b.ReportMetric(2, "command-floor")
	b.ReportMetric(command.Seconds()/rtt.Seconds()/float64(b.N), "command-rtt")
}
