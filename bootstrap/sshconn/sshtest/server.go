//go:build unix

// Package sshtest is an SSH server inside the test process, and the contract
// that every remote.Host must keep. Commands really run, under a login shell
// of choice; the server can be told to misbehave in the ways that sshd does.
package sshtest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// Options say how the server behaves. The zero value is a friendly one that
// accepts every key.
type Options struct {
	// Shell is the login shell; empty means /bin/sh.
	Shell string
	// Path is put before PATH: stand-ins of sudo, id and others live there.
	Path string
	// Env are more variables of the session, "NAME=value".
	Env []string
	// HostKeys are the keys and certificates shown; nil means one fresh ed25519 key.
	HostKeys []ssh.Signer
	// Accept are the user keys that may log in; nil means every key.
	Accept []ssh.PublicKey
	// User is the only login name; empty means any.
	User string
	// MaxAuthTries ends the login after so many keys that were not accepted, as
	// sshd does; 0 means no limit. (The library's own limit spares key queries.)
	MaxAuthTries int
	// Noise is printed to standard output before each command, NoiseErr to standard error.
	Noise, NoiseErr string
	// After is printed to standard output after each command.
	After string
	// Banner is shown before the login.
	Banner string
	// MaxSessions refuses more sessions than that on the server, as sshd does on a connection; 0 never.
	MaxSessions int64
	// NoForwarding refuses direct-tcpip as AllowTcpForwarding no does.
	NoForwarding bool
	// DropAfterKey closes the connection once a key was accepted, as pam_nologin does.
	DropAfterKey bool
	// CutAfter closes the connection after so many bytes sent by the client; 0 never.
	CutAfter int64
	// Latency holds back each direction by this much.
	Latency time.Duration
	// Greeting is written instead of speaking SSH, until Heal; the connection is then closed.
	Greeting string
	// KeyExchanges and Ciphers are all that the server knows; nil means the library's.
	KeyExchanges, Ciphers []string
	// Mute accepts connections and never says a word.
	Mute bool
}

// Server is a running server. Its counters may be read at any time.
type Server struct {
	// Addr is host:port.
	Addr string
	// HostKey is the public half of the first host key.
	HostKey ssh.PublicKey

	t        testing.TB
	opts     Options
	config   *ssh.ServerConfig
	listener net.Listener
	mu       sync.Mutex
	conns    map[net.Conn]bool
	lines    []string
	deaf     atomic.Bool
	healed   atomic.Bool
	// another is the host key that took the first one's place; nil until Rekey.
	another atomic.Pointer[ssh.Signer]

	// Connections counts TCP connections, Logins finished logins, Forwards direct-tcpip channels that were opened.
	Connections, Logins, Forwards atomic.Int64
	// Sessions is the number of session channels open now, MaxSessions the most at one time on all connections.
	Sessions, MaxSessions atomic.Int64
}

// Start runs a server until the end of the test.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if o.Shell == "" {
		o.Shell = "/bin/sh"
	}
	if len(o.HostKeys) == 0 {
		o.HostKeys = []ssh.Signer{NewKey(t)}
	}
	s := &Server{
		Addr: l.Addr().String(), HostKey: o.HostKeys[0].PublicKey(),
		t: t, opts: o, listener: l, conns: map[net.Conn]bool{},
	}
	s.config = s.serverConfig()
	go s.accept()
	t.Cleanup(s.Stop)
	return s
}

// Host and Port are the two parts of Addr.
func (s *Server) Host() string { host, _, _ := net.SplitHostPort(s.Addr); return host }

// Port is the port of Addr.
func (s *Server) Port() int {
	_, port, _ := net.SplitHostPort(s.Addr)
	n, err := strconv.Atoi(port)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

// CommandLines returns every command line that came, in order.
func (s *Server) CommandLines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.lines...)
}

func (s *Server) serverConfig() *ssh.ServerConfig {
	c := &ssh.ServerConfig{
		MaxAuthTries: -1,
		PublicKeyCallback: func(meta ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if s.opts.User != "" && meta.User() != s.opts.User {
				return nil, fmt.Errorf("no user %s", meta.User())
			}
			if s.opts.Accept == nil {
				return nil, nil
			}
			for _, a := range s.opts.Accept {
				if string(a.Marshal()) == string(key.Marshal()) {
					return nil, nil
				}
			}
			return nil, errors.New("unknown key")
		},
	}
	if s.opts.Banner != "" {
		c.BannerCallback = func(ssh.ConnMetadata) string { return s.opts.Banner }
	}
	c.KeyExchanges, c.Ciphers = s.opts.KeyExchanges, s.opts.Ciphers
	for _, k := range s.opts.HostKeys {
		c.AddHostKey(k)
	}
	return c
}

func (s *Server) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.Connections.Add(1)
		f := &faultConn{Conn: c, server: s}
		if s.opts.Latency > 0 {
			f.Conn = newDelayConn(c, s.opts.Latency)
		}
		s.mu.Lock()
		s.conns[c] = true
		s.mu.Unlock()
		go s.serve(f)
	}
}

func (s *Server) serve(c net.Conn) {
	switch {
	case s.opts.Mute:
		return
	case s.opts.Greeting != "" && !s.healed.Load():
		_, _ = io.WriteString(c, s.opts.Greeting)
		if tcp, ok := c.(*faultConn).Conn.(*net.TCPConn); ok {
			_ = tcp.CloseWrite()
			_, _ = io.Copy(io.Discard, c)
		}
		_ = c.Close()
		return
	}
	config := *s.config
	if key := s.another.Load(); key != nil {
		config = *s.serverConfig()
		config.AddHostKey(*key)
	}
	if s.opts.MaxAuthTries > 0 {
		refused := 0
		config.PublicKeyCallback = func(meta ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			permissions, err := s.config.PublicKeyCallback(meta, key)
			if err != nil {
				if refused++; refused >= s.opts.MaxAuthTries {
					_ = c.Close()
				}
			}
			return permissions, err
		}
	}
	if s.opts.DropAfterKey {
		config.PublicKeyCallback = func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) { return nil, nil }
		config.VerifiedPublicKeyCallback = func(ssh.ConnMetadata, ssh.PublicKey, *ssh.Permissions, string) (*ssh.Permissions, error) {
			_ = c.Close()
			return nil, errors.New("dropped")
		}
	}
	conn, chans, reqs, err := ssh.NewServerConn(c, &config)
	if err != nil {
		_ = c.Close()
		return
	}
	s.Logins.Add(1)
	go s.globalRequests(reqs)
	for nc := range chans {
		switch nc.ChannelType() {
		case "session":
			go s.session(nc)
		case "direct-tcpip":
			go s.forward(nc)
		default:
			_ = nc.Reject(ssh.UnknownChannelType, "unknown channel type")
		}
	}
	_ = conn.Close()
}

func (s *Server) globalRequests(reqs <-chan *ssh.Request) {
	for r := range reqs {
		if r.WantReply {
			_ = r.Reply(false, nil)
		}
	}
}

func (s *Server) forward(nc ssh.NewChannel) {
	var to struct {
		Host       string
		Port       uint32
		OriginHost string
		OriginPort uint32
	}
	if s.opts.NoForwarding {
		_ = nc.Reject(ssh.Prohibited, "open failed")
		return
	}
	if err := ssh.Unmarshal(nc.ExtraData(), &to); err != nil {
		_ = nc.Reject(ssh.ConnectionFailed, err.Error())
		return
	}
	target, err := net.Dial("tcp", net.JoinHostPort(to.Host, strconv.Itoa(int(to.Port))))
	if err != nil {
		_ = nc.Reject(ssh.ConnectionFailed, strerror(err))
		return
	}
	ch, reqs, err := nc.Accept()
	if err != nil {
		_ = target.Close()
		return
	}
	s.Forwards.Add(1)
	go ssh.DiscardRequests(reqs)
	go func() {
		_, _ = io.Copy(target, ch)
		_ = target.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(ch, target)
	_ = ch.Close()
	_ = target.Close()
}

// strerror is the message sshd sends: the operating system's words alone.
func strerror(err error) string {
	var sys *os.SyscallError
	if errors.As(err, &sys) {
		return sys.Err.Error()
	}
	return err.Error()
}
