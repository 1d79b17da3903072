package sshconn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sethvargo/go-retry"
	"golang.org/x/crypto/ssh"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
)

// sessionLimit is how many commands run at once on a connection: sshd's
// default MaxSessions is 10, and one place is kept for ending a command.
const sessionLimit = 9

// Info is what is known of the machine at the other end before anything runs.
type Info struct {
	// Host is the machine as the user named it, User the login name, Address user@host:port.
	Host, User, Address string
	// Fingerprint is the SHA256 form of the host key, KeyType its type.
	Fingerprint, KeyType string
	// FirstSeen is true where the key was unknown and has just been accepted.
	FirstSeen bool
	// KnownHost is the line of known_hosts for the key that the machine showed; empty for a certificate.
	KnownHost string
}

// Conn is a connection to one machine. It is safe for concurrent use.
type Conn struct {
	client  *ssh.Client
	opts    *Options
	host    string
	user    string
	address string
	info    Info
	trace   []remote.Attempt
	stats   *counters

	slots   chan struct{} // commands
	reserve chan struct{} // ending a command
	sudo    *sudoState
	lost    atomic.Pointer[error]
	relayed atomic.Bool // direct-tcpip is known to be forbidden
	stop    context.CancelFunc
	over    chan struct{} // closed when the transport has ended
	onClose func() error
	closing sync.Once
	closed  error
}

var _ remote.Host = (*Conn)(nil)

func newConn(client *ssh.Client, opts *Options, info Info, stats *counters, trace []remote.Attempt) *Conn {
	ctx, stop := context.WithCancel(context.Background())
	c := &Conn{
		client: client, opts: opts, host: info.Host, user: info.User, address: info.Address,
		info: info, trace: trace, stats: stats,
		slots: make(chan struct{}, sessionLimit), reserve: make(chan struct{}, 1),
		sudo: newSudoState(), stop: stop, over: make(chan struct{}),
	}
	go c.keepalive(ctx, opts.keepalive())
	go func() {
		err := client.Wait()
		if err == nil {
			err = errors.New("closed by the machine")
		}
		c.setLost(fmt.Errorf("connection lost: %w", err))
		stop()
		close(c.over)
	}()
	return c
}

// Info returns what the login learned.
func (c *Conn) Info() Info { return c.info }

// KnownHost is the line of known_hosts for the key that the machine showed.
func (c *Conn) KnownHost() string { return c.info.KnownHost }

// Stats returns what this connection has cost so far.
func (c *Conn) Stats() Stats { return c.stats.snapshot() }

// Trace returns what was tried while connecting, in order.
func (c *Conn) Trace() []remote.Attempt { return slices.Clone(c.trace) }

// Lost returns why the connection is no longer usable, nil while it is.
func (c *Conn) Lost() error {
	if p := c.lost.Load(); p != nil {
		return *p
	}
	return nil
}

// Close implements remote.Host. It may be called more than once.
func (c *Conn) Close() error {
	c.closing.Do(func() {
		c.setLost(errors.New("connection closed"))
		c.stop()
		_ = c.client.Close() // whatever it says, the connection is over
		if c.onClose != nil {
			c.closed = c.onClose()
		}
	})
	return c.closed
}

// lose gives the connection up for a reason.
func (c *Conn) lose(err error) {
	c.setLost(fmt.Errorf("connection lost: %w", err))
	c.stop()
	_ = c.client.Close() // it is being given up
}

func (c *Conn) setLost(err error) { c.lost.CompareAndSwap(nil, &err) }

func (c *Conn) isLost() bool { return c.lost.Load() != nil }

// sessionWait bounds how long a machine may refuse a channel because it still
// counts closed ones, or because its MaxSessions is lower than the default.
const sessionWait = 20 * time.Second

// openSession opens a channel for a command. Nothing has been sent yet, so a
// refusal is tried again.
func (c *Conn) openSession(ctx context.Context) (ssh.Channel, <-chan *ssh.Request, error) {
	backoff := retry.WithMaxDuration(sessionWait, retry.WithCappedDuration(time.Second, retry.NewExponential(10*time.Millisecond)))
	o, err := retry.DoValue(ctx, backoff, func(ctx context.Context) (session, error) {
		o, err := c.openOnce(ctx)
		var refused *ssh.OpenChannelError
		if errors.As(err, &refused) && refused.Reason != ssh.Prohibited {
			err = retry.RetryableError(err)
		}
		return o, err
	})
	var unreached *remote.ConnectError
	switch {
	case err == nil:
		return o.ch, o.reqs, nil
	case ctx.Err() != nil:
		return nil, nil, fmt.Errorf("not sent: %w", err)
	case errors.As(err, &unreached):
		return nil, nil, err
	}
	return nil, nil, c.unreached(err)
}

// session is a channel for a command.
type session struct {
	ch   ssh.Channel
	reqs <-chan *ssh.Request
	err  error
}

func (c *Conn) openOnce(ctx context.Context) (session, error) {
	if err := c.Lost(); err != nil {
		return session{}, c.unreached(err)
	}
	got := make(chan session, 1)
	go func() {
		ch, reqs, err := c.client.OpenChannel("session", nil)
		got <- session{ch, reqs, err}
	}()
	select {
	case o := <-got:
		var refused *ssh.OpenChannelError
		if o.err != nil && !errors.As(o.err, &refused) {
			c.setLost(fmt.Errorf("connection lost: %w", o.err)) // no answer at all: the transport is gone
		}
		return o, o.err
	case <-ctx.Done():
		go func() {
			if o := <-got; o.err == nil {
				go ssh.DiscardRequests(o.reqs)
				_ = o.ch.Close() // nobody waits for it any more
			}
		}()
		return session{}, context.Cause(ctx)
	}
}

// unreached is the error of a command for which no channel was to be had.
func (c *Conn) unreached(err error) error {
	detail := "opening a channel"
	if c.isLost() {
		detail = "connection lost"
	}
	return &remote.ConnectError{Host: c.host, Address: c.address, Kind: remote.Reset, Detail: detail, Err: err}
}
