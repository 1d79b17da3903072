package bootstrap

import (
	"context"
	"errors"
	"net"
	"slices"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/k3s"
	"github.com/gpuctl/gpuctl/internal/inventory"
)

// nextServerAfter is how long one server may take to connect to before the next
// is tried beside it. A machine that is gone answers nothing at all.
const nextServerAfter = 3 * time.Second

// order are the servers as ways to the API: the one that led there last, then
// those that were seen running k3s, then the others. There is at least one, the
// zero Machine where the cluster has none.
func (a *api) order() []inventory.Machine {
	s, last := a.engine.current(), a.last.Load()
	rank := func(m inventory.Machine) int {
		switch f, seen := s.facts[m.Name]; {
		case last != nil && m.Name == *last && s.unreached[m.Name] == nil:
			return 0
		case seen && serverRuns(f):
			return 1
		case s.unreached[m.Name] != nil:
			return 3
		}
		return 2
	}
	servers := a.engine.want.serverList()
	slices.SortStableFunc(servers, func(x, y inventory.Machine) int { return rank(x) - rank(y) })
	if len(servers) == 0 {
		return []inventory.Machine{{}}
	}
	return servers
}

// through opens a connection as seen from a server, any that answers.
func (a *api) through(ctx context.Context, network, address string) (net.Conn, error) {
	servers := a.order()
	if len(servers) == 1 {
		return a.engine.fleet.on(servers[0].Name).Dial(ctx, network, address)
	}
	type answer struct {
		conn   net.Conn
		err    error
		server string
	}
	ctx, cancel := context.WithCancel(ctx)
	answers := make(chan answer, len(servers))
	next := time.NewTimer(0)
	defer next.Stop()
	asked, open := 0, 0
	var errs []error
	// The losers are cancelled, and closed where they come too late.
	defer func() {
		cancel()
		go func() {
			for range open {
				if late := <-answers; late.conn != nil {
					_ = late.conn.Close()
				}
			}
		}()
	}()
	for {
		select {
		case <-next.C:
			if asked == len(servers) {
				continue
			}
			name := servers[asked].Name
			go func() {
				conn, err := a.engine.fleet.on(name).Dial(ctx, network, address)
				answers <- answer{conn, err, name}
			}()
			asked, open = asked+1, open+1
			next.Reset(nextServerAfter)
		case got := <-answers:
			open--
			if got.err == nil {
				a.last.Store(&got.server)
				return got.conn, nil
			}
			errs = append(errs, named(got.server, got.err))
			if len(errs) == len(servers) {
				return nil, errors.Join(errs...)
			}
			next.Reset(0)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// read reads the credentials from the first server that has them. A server on
// which k3s never started says so only where no other has any.
func (a *api) read(ctx context.Context) (k3s.Credentials, error) {
	var errs []error
	for _, server := range a.order() {
		one, cancel := ctx, context.CancelFunc(func() {})
		if len(a.engine.want.serverList()) > 1 {
			one, cancel = context.WithTimeout(ctx, 15*time.Second) // one that is gone must not use up the others' time
		}
		c, err := k3s.ReadCredentials(one, a.engine.fleet.on(server.Name), server.DataDir)
		cancel()
		if err == nil {
			return c, nil
		}
		if !errors.Is(err, k3s.ErrNoCredentials) || len(errs) == 0 {
			errs = append(errs, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	if len(errs) > 1 {
		errs = slices.DeleteFunc(errs, func(err error) bool { return errors.Is(err, k3s.ErrNoCredentials) })
	}
	if len(errs) == 1 {
		return k3s.Credentials{}, errs[0]
	}
	return k3s.Credentials{}, errors.Join(errs...)
}
