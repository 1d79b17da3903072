package sshconn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/sethvargo/go-retry"
	"golang.org/x/crypto/ssh"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
)

// loginTimeout bounds a login after the greeting; it leaves time to touch a hardware key.
const loginTimeout = 90 * time.Second

// retryCap is the longest pause between two tries.
const retryCap = 5 * time.Second

// Dialer makes connections that share one connection to each jump host, the
// key files and the known_hosts file. It is safe for concurrent use.
type Dialer struct {
	opts Options
	keys *keyFiles

	mu     sync.Mutex
	hops   map[string]*hop
	warned map[string]bool
	all    []*counters
	record sync.Mutex // one writer of the known_hosts file
}

// NewDialer returns a Dialer with these options.
func NewDialer(o Options) *Dialer {
	o.shared = newShared()
	return &Dialer{
		opts:   o,
		keys:   &keyFiles{passphrase: o.Passphrase, files: map[string]*keyFile{}},
		hops:   map[string]*hop{},
		warned: map[string]bool{},
	}
}

// Dial connects to one machine without sharing anything; Close of the
// connection closes what was opened for it.
func Dial(ctx context.Context, t Target, o Options) (*Conn, error) {
	d := NewDialer(o)
	c, err := d.Dial(ctx, t)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	c.onClose = d.Close
	return c, nil
}

// Dial connects to a machine. Failures that can heal are tried again until
// Options.RetryFor has passed; the error is a *remote.ConnectError.
func (d *Dialer) Dial(ctx context.Context, t Target) (*Conn, error) {
	var last *remote.ConnectError
	tries := 0
	backoff := d.backoff(t, &last)
	conn, err := retry.DoValue(ctx, backoff, func(ctx context.Context) (*Conn, error) {
		tries++
		c, err := d.connect(ctx, t, nil)
		if err == nil {
			return c, nil
		}
		if !errors.As(err, &last) {
			return nil, err
		}
		last.Tries = tries
		if last.Permanent() || ctx.Err() != nil {
			return nil, err
		}
		return nil, retry.RetryableError(err)
	})
	if err != nil && last != nil && ctx.Err() != nil {
		last.Err = errors.Join(last.Err, context.Cause(ctx))
		return nil, last
	}
	return conn, err
}

func (d *Dialer) backoff(t Target, last **remote.ConnectError) retry.Backoff {
	if d.opts.RetryFor <= 0 {
		return retry.BackoffFunc(func() (time.Duration, bool) { return 0, true })
	}
	b := retry.NewExponential(500 * time.Millisecond)
	b = retry.WithCappedDuration(retryCap, b)
	b = retry.WithJitterPercent(20, b)
	b = retry.WithMaxDuration(d.opts.RetryFor, b)
	return retry.BackoffFunc(func() (time.Duration, bool) {
		next, stop := b.Next()
		if !stop && d.opts.OnRetry != nil {
			d.opts.OnRetry(t.name(), *last, next)
		}
		return next, stop
	})
}

// Resolve says how a target would be connected to. It opens no connection.
func (d *Dialer) Resolve(ctx context.Context, t Target) (Resolved, error) {
	s, err := resolve(ctx, t, &d.opts)
	if err != nil {
		return Resolved{}, &remote.ConnectError{Host: t.name(), Kind: remote.Config, Err: err}
	}
	r := Resolved{HostName: s.hostName, User: s.user, Port: s.port, ProxyCommand: s.proxyCommand}
	for _, id := range s.identities {
		r.IdentityFiles = append(r.IdentityFiles, id.path)
	}
	for _, h := range s.jump {
		r.Jump = append(r.Jump, hopName(h))
	}
	return r, nil
}

// Stats sums up all connections made so far, those to jump hosts included.
func (d *Dialer) Stats() Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	var sum Stats
	for _, c := range d.all {
		sum = sum.plus(c.snapshot())
	}
	return sum
}

// Close ends the connections to jump hosts, and with them all that runs through them.
func (d *Dialer) Close() error {
	d.mu.Lock()
	hops := d.hops
	d.hops = map[string]*hop{}
	d.mu.Unlock()
	var err error
	for _, h := range hops {
		<-h.ready
		if h.conn != nil {
			err = errors.Join(err, h.conn.Close())
		}
	}
	return err
}

func (d *Dialer) newCounters() *counters {
	c := &counters{}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, c)
	return c
}

func (d *Dialer) warnOnce(what, text string) {
	d.mu.Lock()
	told := d.warned[what]
	d.warned[what] = true
	d.mu.Unlock()
	if !told {
		d.opts.logger().Warn("key file", "file", what, "warning", text)
	}
}

// connect makes one try. behind are the hops that wait for this connection.
func (d *Dialer) connect(ctx context.Context, t Target, behind []string) (*Conn, error) {
	s, err := resolve(ctx, t, &d.opts)
	if err != nil {
		return nil, &remote.ConnectError{Host: t.name(), Kind: remote.Config, Err: err}
	}
	l := &login{
		d: d, target: t, s: s, stats: d.newCounters(),
		address: s.user + "@" + net.JoinHostPort(s.hostName, strconv.Itoa(s.port)),
	}
	if l.policy, err = newKeyPolicy(t, s, &d.opts, d.accept); err != nil {
		return nil, l.failed(remote.Config, "", err)
	}
	transport, err := l.transport(ctx, behind)
	if err != nil {
		return nil, err
	}
	return l.run(ctx, transport)
}

// accept records a new host key in the cluster's file.
func (d *Dialer) accept(name string, key ssh.PublicKey) error {
	if d.opts.KnownHosts == "" {
		return nil
	}
	d.record.Lock()
	defer d.record.Unlock()
	return recordKey(d.opts.KnownHosts, name, key)
}

// hopName writes a hop as ProxyJump does.
func hopName(t Target) string {
	name := t.Host
	if t.Port != 0 {
		name = net.JoinHostPort(t.Host, strconv.Itoa(t.Port))
	}
	if t.User != "" {
		name = t.User + "@" + name
	}
	return name
}

func (l *login) note(what, format string, args ...any) {
	l.trace = append(l.trace, remote.Attempt{What: what, Answer: fmt.Sprintf(format, args...)})
}
