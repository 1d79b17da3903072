package sshconn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
)

// login is one try to log in to one host.
type login struct {
	d       *Dialer
	target  Target
	s       *settings
	policy  *keyPolicy
	stats   *counters
	address string
	trace   []remote.Attempt

	mu     sync.Mutex
	banner strings.Builder // what the server showed before the login
}

// run greets, checks the host key and authenticates over a transport.
func (l *login) run(ctx context.Context, transport net.Conn) (*Conn, error) {
	l.stats.connections.Add(1)
	w := &wire{Conn: transport, stats: l.stats}
	offer, signers := l.d.newKeyOffer(ctx, l.s)
	defer offer.close()
	ctx, cancel := context.WithTimeoutCause(ctx, loginTimeout, errors.New("no end of the login"))
	defer cancel()
	unwatch := l.watch(ctx, w)
	conn, chans, reqs, err := ssh.NewClientConn(w, l.address, &ssh.ClientConfig{
		User:              l.s.user,
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(signers...)},
		HostKeyCallback:   l.policy.check,
		HostKeyAlgorithms: l.policy.algorithms(),
		BannerCallback:    l.showBanner,
	})
	timedOut := unwatch()
	l.noteHostKey()
	l.trace = append(l.trace, offer.attempts(err == nil)...)
	if err != nil {
		_ = transport.Close() // it failed already
		return nil, l.classify(err, timedOut, w, offer)
	}
	info := Info{
		Host: l.target.name(), User: l.s.user, Address: l.address, FirstSeen: l.policy.firstSeen,
		Fingerprint: ssh.FingerprintSHA256(l.policy.seen), KeyType: l.policy.seen.Type(),
	}
	if _, certificate := l.policy.seen.(*ssh.Certificate); !certificate {
		info.KnownHost = knownhosts.Line([]string{l.policy.name}, l.policy.seen)
	}
	if info.FirstSeen && l.d.opts.OnNewHostKey != nil {
		l.d.opts.OnNewHostKey(info)
	}
	return newConn(ssh.NewClient(conn, chans, reqs), &l.d.opts, info, l.stats, l.trace), nil
}

// watch closes the transport when ctx ends or no greeting comes in time. The
// returned function stops watching and says why it closed, nil if it did not.
func (l *login) watch(ctx context.Context, w *wire) (unwatch func() error) {
	done := make(chan struct{})
	finished := make(chan error, 1)
	go func() {
		greeting := time.NewTimer(l.s.connectTimeout)
		defer greeting.Stop()
		for {
			select {
			case <-done:
				finished <- nil
				return
			case <-greeting.C:
				if w.greeted.Load() > 0 {
					continue
				}
				finished <- fmt.Errorf("no greeting within %s", l.s.connectTimeout)
			case <-ctx.Done():
				finished <- context.Cause(ctx)
			}
			_ = w.Close() // ends the login
			return
		}
	}()
	return func() error {
		close(done)
		return <-finished
	}
}

func (l *login) showBanner(text string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.banner.Len()+len(text) <= noiseLimit {
		l.banner.WriteString(text)
	}
	return nil
}

func (l *login) bannerText() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(strings.Fields(l.banner.String()), " ")
}

func (l *login) noteHostKey() {
	p := l.policy
	if p.seen == nil {
		return
	}
	answer := "known"
	switch {
	case p.problem != nil:
		answer = p.problem.Error()
	case p.pin != nil:
		answer = "is the pinned one"
	case p.firstSeen:
		answer = "accepted for the first time"
	}
	l.note("host key "+p.seen.Type()+" "+ssh.FingerprintSHA256(p.seen), "%s", answer)
}

// failed is the error of this login.
func (l *login) failed(kind remote.ConnectKind, detail string, err error) *remote.ConnectError {
	return &remote.ConnectError{
		Host: l.target.name(), Address: l.address, Kind: kind, Detail: detail, Trace: l.trace, Tries: 1, Err: err,
	}
}
