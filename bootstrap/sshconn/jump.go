package sshconn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
)

// maxHops bounds the time that a chain may take.
const maxHops = 8

// hop is a connection to a jump host, shared by all that is behind it.
type hop struct {
	ready chan struct{} // closed when conn or err is there
	conn  *Conn
	err   error
}

// transport opens the byte stream to the host of l.
func (l *login) transport(ctx context.Context, behind []string) (net.Conn, error) {
	address := net.JoinHostPort(l.s.hostName, strconv.Itoa(l.s.port))
	if l.s.proxyCommand != "" {
		l.note("proxy command", "%s", l.s.proxyCommand)
		conn, err := l.proxyCommand()
		if err != nil {
			return nil, l.failed(remote.Config, "proxy command", err)
		}
		return conn, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, l.s.connectTimeout*(1+maxHops), errors.New("no end of connecting"))
	defer cancel()
	if len(l.s.jump) > 0 {
		return l.throughHop(ctx, address, behind)
	}
	dialer := net.Dialer{Timeout: l.s.connectTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		l.note("dial "+address, "%v", err)
		return nil, l.dialFailed(err)
	}
	l.note("dial "+address, "connected")
	return conn, nil
}

func (l *login) throughHop(ctx context.Context, address string, behind []string) (net.Conn, error) {
	via := chainName(l.s.jump)
	if slices.Contains(behind, via) {
		return nil, l.failed(remote.Config, "", fmt.Errorf("jump hosts name each other: %s", strings.Join(append(behind, via), " behind ")))
	}
	hop, err := l.d.hop(ctx, l.hops(), append(slices.Clone(behind), via))
	if err != nil {
		l.note("jump host "+via, "%v", err)
		return nil, l.failed(remote.Jump, "jump host "+via, err)
	}
	l.note("jump host "+via, "connected as %s", hop.address)
	dialCtx, cancel := context.WithTimeoutCause(ctx, l.s.connectTimeout, fmt.Errorf("no answer within %s", l.s.connectTimeout))
	defer cancel()
	conn, err := hop.dialRaw(dialCtx, "tcp", address)
	if err == nil {
		l.note("dial "+address+" from "+via, "connected")
		return conn, nil
	}
	l.note("dial "+address+" from "+via, "%v", err)
	return nil, l.hopDialFailed(err, via)
}

// hops is the chain to go through. Whoever names jump hosts together with a key
// means the key for them too; OpenSSH's -J does not do that.
func (l *login) hops() []Target {
	chain := slices.Clone(l.s.jump)
	if l.target.Jump == "" {
		return chain
	}
	for i := range chain {
		if chain[i].IdentityFile == "" {
			chain[i].IdentityFile = l.target.IdentityFile
		}
	}
	return chain
}

// hopDialFailed classifies what the jump host says about the next connection.
// SSH carries one code for all failures to connect; the words are the
// operating system's (strerror, gai_strerror) in sshd's locale.
func (l *login) hopDialFailed(err error, via string) *remote.ConnectError {
	detail := "from jump host " + via
	var forbidden *remote.ForwardingError
	var open *ssh.OpenChannelError
	switch {
	case errors.As(err, &forbidden):
		return l.failed(remote.Jump, "jump host "+via+" forbids forwarding", &remote.ConnectError{Host: via, Kind: remote.Config, Err: err})
	case !errors.As(err, &open):
		return l.failed(remote.Filtered, detail, err)
	case strings.Contains(open.Message, "refused"):
		return l.failed(remote.Refused, detail, err)
	case strings.Contains(open.Message, "not known"), strings.Contains(open.Message, "No address"):
		return l.failed(remote.DNS, detail, err)
	}
	return l.failed(remote.Filtered, detail, err)
}

// hop returns the connection to the last host of a chain. The first who asks
// makes it, the others wait; one that was lost is made again.
func (d *Dialer) hop(ctx context.Context, chain []Target, behind []string) (*Conn, error) {
	key := chainName(chain)
	d.mu.Lock()
	h := d.hops[key]
	if h == nil || h.broken() {
		h = &hop{ready: make(chan struct{})}
		d.hops[key] = h
		d.mu.Unlock()
		h.conn, h.err = d.connect(ctx, hopTarget(chain), behind)
		close(h.ready)
		return h.conn, h.err
	}
	d.mu.Unlock()
	select {
	case <-h.ready:
		return h.conn, h.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// broken reports a hop that has failed or been lost. One that is being made is not.
func (h *hop) broken() bool {
	select {
	case <-h.ready:
		return h.err != nil || h.conn.isLost()
	default:
		return false
	}
}

// hopTarget is the last hop, reached through the ones before it. A first hop
// takes its own jump host from ssh_config, as ssh does.
func hopTarget(chain []Target) Target {
	t := chain[len(chain)-1]
	t.Name = hopName(t)
	t.Jump = ""
	if len(chain) > 1 {
		t.Jump = chainName(chain[:len(chain)-1])
	}
	return t
}

func chainName(chain []Target) string {
	names := make([]string, len(chain))
	for i, t := range chain {
		names[i] = hopName(t)
	}
	return strings.Join(names, ",")
}
