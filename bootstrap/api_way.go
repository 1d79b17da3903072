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
	return race(ctx, a, func(ctx context.Context, m inventory.Machine) (net.Conn, error) {
		return a.engine.fleet.on(m.Name).Dial(ctx, network, address)
	}, func(late net.Conn) { _ = late.Close() }) // nobody has it
}

// read reads the credentials from a server that has them. One on which k3s never
// started says so only where no other has any.
func (a *api) read(ctx context.Context) (k3s.Credentials, error) {
	return race(ctx, a, func(ctx context.Context, m inventory.Machine) (k3s.Credentials, error) {
		return k3s.ReadCredentials(ctx, a.engine.fleet.on(m.Name), m.DataDir)
	}, func(k3s.Credentials) {})
}

// race asks one server after the other and returns the first answer that is
// none of an error. The next is asked when one fails, or is silent for a while.
// The losers are cancelled; drop takes an answer that comes too late.
func race[T any](ctx context.Context, a *api, ask func(context.Context, inventory.Machine) (T, error), drop func(T)) (T, error) {
	servers := a.order()
	if len(servers) == 1 {
		return ask(ctx, servers[0])
	}
	type answer struct {
		value  T
		err    error
		server string
	}
	ctx, cancel := context.WithCancel(ctx)
	answers := make(chan answer, len(servers))
	next := time.NewTimer(0)
	defer next.Stop()
	asked, open := 0, 0
	var errs []error
	var none T
	defer func() {
		cancel()
		go func() {
			for range open {
				if late := <-answers; late.err == nil {
					drop(late.value)
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
			m := servers[asked]
			go func() {
				value, err := ask(ctx, m)
				answers <- answer{value, err, m.Name}
			}()
			asked, open = asked+1, open+1
			next.Reset(nextServerAfter)
		case got := <-answers:
			open--
			if got.err == nil {
				a.last.Store(&got.server)
				return got.value, nil
			}
			if errs = append(errs, got.err); len(errs) == len(servers) {
				return none, telling(errs)
			}
			next.Reset(0)
		case <-ctx.Done():
			return none, context.Cause(ctx)
		}
	}
}

// telling are the errors of all servers, without those that only say that k3s
// has not started there, where others say more.
func telling(errs []error) error {
	more := slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return errors.Is(err, k3s.ErrNoCredentials) })
	switch len(more) {
	case 0:
		return errs[0]
	case 1:
		return more[0]
	}
	return errors.Join(more...)
}
