//go:build unix

package sshconn_test

import (
	"bytes"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/bootstrap/sshconn"
	"github.com/gpuctl/gpuctl/bootstrap/sshconn/sshtest"
)

// freePort returns an address on which nothing listens.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestFailuresToldApart(t *testing.T) {
	cases := []struct {
		name      string
		server    sshtest.Options
		kind      remote.ConnectKind
		permanent bool
		words     string
	}{
		{"mute", sshtest.Options{Mute: true}, remote.Banner, false, "does not greet"},
		{"web server", sshtest.Options{Greeting: "HTTP/1.1 400 Bad Request\r\n\r\n"}, remote.Banner, false, "HTTP/1.1 400 Bad Request"},
		{"too busy", sshtest.Options{Greeting: "Exceeded MaxStartups\r\n"}, remote.Reset, false, "too busy"},
		{"still booting", sshtest.Options{DropAfterKey: true, Banner: "System is booting up.\n"}, remote.Reset, false, "System is booting up."},
		{"wrong user", sshtest.Options{User: "root"}, remote.Auth, true, "user ubuntu: none of 1 keys"},
		{"cut in the handshake", sshtest.Options{CutAfter: 100}, remote.Reset, false, "key exchange"},
		{"no shell", sshtest.Options{Shell: "/bin/false", Noise: "This account is currently not available.\n"}, remote.NoShell, true, "not available"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := sshtest.Start(t, c.server)
			o := options(t)
			o.ConnectTimeout = time.Second
			conn, err := sshconn.Dial(t.Context(), target(t, s), o)
			if err == nil {
				defer conn.Close()
				_, err = conn.Run(t.Context(), remote.Cmd{Name: "x", Script: "true"})
			}
			e := connectError(t, err)
			if e.Kind != c.kind || e.Permanent() != c.permanent || !strings.Contains(e.Error(), c.words) {
				t.Errorf("kind %s, permanent %v: %v", e.Kind, e.Permanent(), e)
			}
		})
	}
}

func TestNobodyThere(t *testing.T) {
	o := options(t)
	o.ConnectTimeout = time.Second
	host, port, err := net.SplitHostPort(freePort(t))
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		jump string
		kind remote.ConnectKind
	}{{host + ":" + port, remote.Refused}, {"no-such-host.invalid:22", remote.DNS}}
	for _, c := range cases {
		// As the target itself, then as a hop on the way to it.
		h, p, _ := net.SplitHostPort(c.jump)
		tgt := sshconn.Target{Host: h, User: "x"}
		if _, err := net.LookupPort("tcp", p); err != nil {
			t.Fatal(err)
		}
		tgt.Port = atoi(t, p)
		_, err := sshconn.Dial(t.Context(), tgt, o)
		if e := connectError(t, err); e.Kind != c.kind {
			t.Errorf("%s: kind %s: %v", c.jump, e.Kind, e)
		}
		_, err = sshconn.Dial(t.Context(), sshconn.Target{Host: "behind.example", User: "x", Jump: "y@" + c.jump}, o)
		e := connectError(t, err)
		var hop *remote.ConnectError
		if e.Kind != remote.Jump || !errors.As(e.Err, &hop) || hop.Kind != c.kind || !strings.Contains(e.Error(), h) {
			t.Errorf("jump %s: %v", c.jump, e)
		}
	}
}

// A refused port heals when the machine has booted; an unknown user does not.
func TestRetry(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{Greeting: "Exceeded MaxStartups\r\n"})
	o := options(t)
	o.RetryFor = time.Minute
	retries := 0
	o.OnRetry = func(_ string, err error, next time.Duration) {
		if connectError(t, err).Kind != remote.Reset || next > 6*time.Second {
			t.Errorf("retry in %s after %v", next, err)
		}
		retries++
		s.Heal()
	}
	dial(t, target(t, s), o)
	if retries != 1 || s.Connections.Load() != 2 {
		t.Errorf("%d retries, %d connections", retries, s.Connections.Load())
	}

	locked := sshtest.Start(t, sshtest.Options{User: "nobody-else"})
	_, err := sshconn.Dial(t.Context(), target(t, locked), o)
	if e := connectError(t, err); e.Tries != 1 || retries != 1 {
		t.Errorf("%d tries, %d retries: %v", e.Tries, retries, err)
	}
}

func TestRetryEnds(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{Greeting: "Exceeded MaxStartups\r\n"})
	o := options(t)
	o.RetryFor = 700 * time.Millisecond
	_, err := sshconn.Dial(t.Context(), target(t, s), o)
	if e := connectError(t, err); e.Kind != remote.Reset || e.Tries < 2 {
		t.Errorf("%d tries: %v", e.Tries, err)
	}
}

// A command whose connection is lost has an unknown result.
func TestCutOff(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{CutAfter: 200_000})
	c := dial(t, target(t, s), options(t))
	_, err := c.Run(t.Context(), remote.Cmd{Name: "upload", Script: "cat >/dev/null", Stdin: bytes.NewReader(make([]byte, 1<<20))})
	var cut *remote.CutOffError
	if !errors.As(err, &cut) || cut.Name != "upload" {
		t.Fatalf("got %v, want a cut-off", err)
	}
	_, err = c.Run(t.Context(), remote.Cmd{Name: "next", Script: "true"})
	if e := connectError(t, err); e.Kind != remote.Reset || e.Permanent() {
		t.Errorf("after the cut: %v", err)
	}
	if c.Lost() == nil {
		t.Error("the connection does not know that it is lost")
	}
}

// A peer that lost its power says nothing any more.
func TestDeadPeer(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{})
	o := options(t)
	o.Keepalive = 100 * time.Millisecond
	c := dial(t, target(t, s), o)
	_, err := c.Run(t.Context(), remote.Cmd{Name: "long", Script: "echo; sleep 60", Stdout: writer(func(p []byte) { s.GoDeaf() })})
	var cut *remote.CutOffError
	if !errors.As(err, &cut) || !strings.Contains(err.Error(), "no sign of life") {
		t.Errorf("got %v", err)
	}
}

type writer func([]byte)

func (w writer) Write(p []byte) (int, error) {
	w(p)
	return len(p), nil
}
