package sshconn

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
)

//go:embed sh/relay.sh
var relayScript string

// Exit codes of relay.sh.
const (
	exitNoRelay   = 69
	exitNoConnect = 68
)

// relayTimeout bounds a relayed connection; they live as long as what uses them.
const relayTimeout = 365 * 24 * time.Hour

// Dial implements remote.Host.
func (c *Conn) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	raw, err := c.dialRaw(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if _, ok := raw.(*relayConn); ok {
		return raw, nil
	}
	// A channel has no deadlines and TLS clients want them: a pipe has.
	near, far := net.Pipe()
	go func() {
		_, _ = io.Copy(far, raw) // the reader sees the end
		_ = far.Close()
		_ = raw.Close()
	}()
	go func() {
		_, _ = io.Copy(raw, far)
		_ = raw.Close()
		_ = far.Close()
	}()
	return &relayConn{Conn: near, address: address}, nil
}

// dialRaw opens a forwarded channel, or a relay where forwarding is forbidden.
func (c *Conn) dialRaw(ctx context.Context, network, address string) (net.Conn, error) {
	if network != "tcp" {
		return nil, fmt.Errorf("dialling %s: network %q is not supported", address, network)
	}
	if err := c.Lost(); err != nil {
		return nil, c.unreached(err)
	}
	if c.relayed.Load() {
		return c.relay(ctx, address)
	}
	conn, err := c.client.DialContext(ctx, network, address)
	var open *ssh.OpenChannelError
	if errors.As(err, &open) && (open.Reason == ssh.Prohibited || open.Reason == ssh.UnknownChannelType) {
		c.relayed.Store(true)
		return c.relay(ctx, address)
	}
	return conn, err
}

// relay connects by a program on the machine, over the streams of a command.
func (c *Conn) relay(ctx context.Context, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return nil, fmt.Errorf("dialling %s: %w", address, err)
	}
	if err := CheckHost(host); err != nil {
		return nil, err
	}
	near, far := net.Pipe()
	first := &firstByte{w: far, came: make(chan struct{})}
	ended := make(chan error, 1)
	life, end := context.WithCancel(context.Background())
	go func() {
		_, err := c.Run(life, remote.Cmd{
			Name: "relay to " + address, Script: relayScript, Args: []string{host, port},
			Stdin: far, Stdout: first, Timeout: relayTimeout,
		})
		end()
		_ = far.Close()
		ended <- err
	}()
	select {
	case <-first.came:
		return &relayConn{Conn: near, address: address, end: end}, nil
	case err := <-ended:
		return nil, c.relayFailed(address, err)
	case <-ctx.Done():
		end()
		return nil, context.Cause(ctx)
	}
}

func (c *Conn) relayFailed(address string, err error) error {
	switch remote.ExitCode(err) {
	case exitNoConnect:
		return fmt.Errorf("%s: dialling %s from the machine: %w", c.host, address, err)
	case exitNoRelay:
		err = errors.New("sshd forbids forwarding, and the machine has no perl, python3, bash, socat or nc to relay")
	case 0:
		err = errors.New("the relay ended at once")
	}
	return &remote.ForwardingError{Host: c.host, Address: address, Err: err}
}

// firstByte takes the one byte by which relay.sh says that it is connected.
type firstByte struct {
	w    io.Writer
	came chan struct{}
	seen bool
}

func (f *firstByte) Write(p []byte) (int, error) {
	n := len(p)
	if !f.seen && n > 0 {
		f.seen = true
		close(f.came)
		p = p[1:]
	}
	if len(p) == 0 {
		return n, nil
	}
	_, err := f.w.Write(p)
	return n, err
}

// relayConn is a connection as seen from the machine.
type relayConn struct {
	net.Conn
	address string
	end     context.CancelFunc
}

// Close ends the relay too.
func (r *relayConn) Close() error {
	err := r.Conn.Close()
	if r.end != nil {
		r.end()
	}
	return err
}

// RemoteAddr is the address that was dialled.
func (r *relayConn) RemoteAddr() net.Addr { return machineAddr(r.address) }

type machineAddr string

func (machineAddr) Network() string  { return "tcp" }
func (a machineAddr) String() string { return string(a) }
