//go:build unix

package sshconn_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/bootstrap/sshconn"
	"github.com/gpuctl/gpuctl/bootstrap/sshconn/sshtest"
)

// TestMain lets the test binary be a ProxyCommand: "proxy HOST PORT".
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "proxy" {
		os.Exit(proxy(os.Args[2], os.Args[3]))
	}
	os.Exit(m.Run())
}

func proxy(host, port string) int {
	conn, err := net.Dial("tcp", net.JoinHostPort(host, port))
	if err != nil {
		fmt.Fprintln(os.Stderr, "proxy says:", err)
		return 1
	}
	go func() { _, _ = io.Copy(conn, os.Stdin) }()
	_, _ = io.Copy(os.Stdout, conn)
	return 0
}

func atoi(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// hopConfig is an ssh_config with a key of its own for each server, and the
// alias "hopN" for the Nth.
func hopConfig(t *testing.T, o *sshconn.Options, servers ...*sshtest.Server) {
	t.Helper()
	var b strings.Builder
	for i, s := range servers {
		fmt.Fprintf(&b, "Host hop%d\n  HostName %s\n  Port %d\n  User jumper%d\n", i, s.Host(), s.Port(), i)
	}
	key := sshtest.KeyFile(t, t.TempDir(), "id", sshtest.NewPrivate(t), "")
	fmt.Fprintf(&b, "Host *\n  IdentityFile %s\n", key)
	o.ConfigFile = t.TempDir() + "/config"
	if err := os.WriteFile(o.ConfigFile, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Many machines behind one hop share one connection to it: sshd drops logins
// at random when more than ten are in progress (MaxStartups).
func TestOneConnectionToTheHop(t *testing.T) {
	for _, forbidden := range []bool{false, true} {
		t.Run(fmt.Sprintf("forwarding forbidden %v", forbidden), func(t *testing.T) {
			hop := sshtest.Start(t, sshtest.Options{User: "jumper0", NoForwarding: forbidden})
			o := options(t)
			hopConfig(t, &o, hop)
			d := sshconn.NewDialer(o)
			n := 20
			if forbidden {
				n = 5 // each relay is one of ten commands
			}
			var wg sync.WaitGroup
			for range n {
				s := sshtest.Start(t, sshtest.Options{User: "ubuntu"})
				tgt := target(t, s)
				tgt.Jump = "hop0"
				wg.Go(func() {
					c, err := d.Dial(t.Context(), tgt)
					if err != nil {
						t.Error(err)
						return
					}
					if res, err := c.Run(t.Context(), remote.Cmd{Name: "x", Script: "echo hi", Sudo: true}); err != nil || string(res.Stdout) != "hi\n" {
						t.Errorf("%q %v", res.Stdout, err)
					}
					if err := c.Close(); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if got := hop.Connections.Load(); got != 1 {
				t.Errorf("%d connections to the hop", got)
			}
			if got := d.Stats().Connections; got != int64(n)+1 {
				t.Errorf("%d connections counted", got)
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestChainOfHops(t *testing.T) {
	first := sshtest.Start(t, sshtest.Options{User: "jumper0"})
	second := sshtest.Start(t, sshtest.Options{User: "jumper1"})
	s := sshtest.Start(t, sshtest.Options{User: "ubuntu"})
	o := options(t)
	hopConfig(t, &o, first, second)
	tgt := target(t, s)
	tgt.Jump = "hop0,hop1"
	c := dial(t, tgt, o)
	if _, err := c.Run(t.Context(), remote.Cmd{Name: "x", Script: "true"}); err != nil {
		t.Error(err)
	}
	if first.Forwards.Load() != 1 || second.Forwards.Load() != 1 || c.Info().Address != fmt.Sprintf("ubuntu@%s", s.Addr) {
		t.Errorf("forwards %d and %d, %+v", first.Forwards.Load(), second.Forwards.Load(), c.Info())
	}
	text, err := os.ReadFile(o.KnownHosts)
	if err != nil || strings.Count(string(text), "\n") != 3 {
		t.Errorf("known hosts: %q %v", text, err)
	}
}

// A hop that was lost is made again for the next machine.
func TestLostHop(t *testing.T) {
	hop := sshtest.Start(t, sshtest.Options{})
	s := sshtest.Start(t, sshtest.Options{})
	o := options(t)
	hopConfig(t, &o, hop)
	d := sshconn.NewDialer(o)
	tgt := target(t, s)
	tgt.Jump = "hop0"
	c, err := d.Dial(t.Context(), tgt)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Run(t.Context(), remote.Cmd{Name: "x", Script: "echo; sleep 60", Stdout: writer(func([]byte) { hop.Cut() })})
	var cut *remote.CutOffError
	if !errors.As(err, &cut) {
		t.Errorf("got %v", err)
	}
	if _, err = d.Dial(t.Context(), tgt); err != nil {
		t.Error(err)
	}
	if got := hop.Connections.Load(); got != 2 {
		t.Errorf("%d connections to the hop", got)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

func TestHopFailuresNameTheHop(t *testing.T) {
	locked := sshtest.Start(t, sshtest.Options{Accept: []ssh.PublicKey{sshtest.NewKey(t).PublicKey()}})
	open := sshtest.Start(t, sshtest.Options{})
	o := options(t)
	hopConfig(t, &o, locked, open)
	_, err := sshconn.Dial(t.Context(), sshconn.Target{Host: "gpu.example", User: "x", Jump: "hop0"}, o)
	e := connectError(t, err)
	var hop *remote.ConnectError
	if e.Kind != remote.Jump || !e.Permanent() || !errors.As(e.Err, &hop) || hop.Kind != remote.Auth || hop.Host != "hop0" || len(hop.Trace) == 0 {
		t.Errorf("got %v", err)
	}
	host, port, err := net.SplitHostPort(freePort(t))
	if err != nil {
		t.Fatal(err)
	}
	_, err = sshconn.Dial(t.Context(), sshconn.Target{Host: host, Port: atoi(t, port), User: "x", Jump: "hop1"}, o)
	if e := connectError(t, err); e.Kind != remote.Refused || e.Permanent() || !strings.Contains(e.Error(), "from jump host hop1") {
		t.Errorf("got %v", err)
	}
}

func TestHopsThatNameEachOther(t *testing.T) {
	o := options(t)
	o.ConfigFile = t.TempDir() + "/config"
	if err := os.WriteFile(o.ConfigFile, []byte("Host a\n ProxyJump b\nHost b\n ProxyJump a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := sshconn.Dial(t.Context(), sshconn.Target{Host: "a", User: "x"}, o)
	if e := connectError(t, err); !e.Permanent() || !strings.Contains(e.Error(), "name each other") {
		t.Errorf("got %v", err)
	}
}

func TestProxyCommand(t *testing.T) {
	s := sshtest.Start(t, sshtest.Options{User: "ubuntu"})
	o := options(t)
	o.ConfigFile = t.TempDir() + "/config"
	text := fmt.Sprintf("Host *\n ProxyCommand %s proxy %%h %%p\n", os.Args[0])
	if err := os.WriteFile(o.ConfigFile, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := dial(t, target(t, s), o)
	if res, err := c.Run(t.Context(), remote.Cmd{Name: "x", Script: "echo hi"}); err != nil || string(res.Stdout) != "hi\n" {
		t.Errorf("%q %v", res.Stdout, err)
	}
	_, port, err := net.SplitHostPort(freePort(t))
	if err != nil {
		t.Fatal(err)
	}
	_, err = sshconn.Dial(t.Context(), sshconn.Target{Host: "127.0.0.1", Port: atoi(t, port), User: "x"}, o)
	if e := connectError(t, err); !strings.Contains(e.Error(), "proxy says: dial tcp") {
		t.Errorf("got %v", err)
	}
}
