package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/bootstrap/k3s"
	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/event"
	"github.com/gpuctl/gpuctl/internal/inventory"
)

// sight is everything that was seen: machines and cluster. It is a value; a
// newer one replaces it.
type sight struct {
	facts map[string]host.Facts
	// registries are files of registry mirrors that are not gpuctl's alone, by machine.
	registries map[string][]byte
	// unreached says why a machine could not be looked at.
	unreached map[string]error
	// credentials of the cluster, nil while there is none.
	credentials *k3s.Credentials
	cluster     clusterSight
	// pairs are the ways between machines, where they were probed.
	pairs   []Pair
	exposed []Exposed
	// hostKeys are lines of known_hosts, by machine.
	hostKeys map[string]string
	// laid are those that this run has left on the server; nil before.
	laid []byte
	// other is why the server is that of another cluster; empty where it is ours.
	other string
	// borne is the id on the first server's disk, read where neither its k3s nor this
	// computer says one.
	borne string
}

// observe looks at all machines at once, then at the cluster. Machines that are
// not reached are part of the result; the error is only the end of ctx.
func (e *Engine) observe(ctx context.Context) (sight, error) {
	s := sight{facts: map[string]host.Facts{}, unreached: map[string]error{}, registries: map[string][]byte{}}
	e.observeExisting(ctx, &s)
	var mu sync.Mutex
	var group errgroup.Group
	for _, m := range e.want.machines {
		group.Go(func() error {
			facts, registries, err := e.look(ctx, m)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				s.unreached[m.Name] = err
				return nil
			}
			s.facts[m.Name], s.registries[m.Name] = facts, registries
			return nil
		})
	}
	_ = group.Wait() // every failure stands in unreached
	s.hostKeys = e.fleet.hostKeys()
	if ctx.Err() != nil {
		// What had not been reached by then is the reason that the time ran out.
		return s, errors.Join(context.Cause(ctx), e.stopped(s, book{}))
	}
	if e.want.existing() == nil {
		e.observeCluster(ctx, &s)
		e.observeID(ctx, &s)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sight = s
	return s, nil
}

// looks bounds how often a machine is looked at again in one round because it
// was too busy to show what it had shown before.
const looks = 3

// observeScope looks at one machine again, or at the cluster only.
func (e *Engine) observeScope(ctx context.Context, scope string) (sight, error) {
	fresh := e.current()
	if scope != "" {
		facts, registries, err := e.look(ctx, e.fleet.on(scope).machine)
		if err != nil {
			return sight{}, err
		}
		fresh = e.current() // others have looked meanwhile
		facts = facts.Since(fresh.facts[scope])
		for again := 0; again < looks && facts.Lost(fresh.facts[scope]) != ""; again++ {
			if facts, registries, err = e.look(ctx, e.fleet.on(scope).machine); err != nil {
				return sight{}, err
			}
			fresh = e.current()
			facts = facts.Since(fresh.facts[scope])
		}
		fresh.facts[scope], fresh.registries[scope] = facts, registries
	}
	e.observeCluster(ctx, &fresh)
	e.observeID(ctx, &fresh)
	e.mu.Lock()
	defer e.mu.Unlock()
	if scope != "" {
		e.sight.facts[scope], e.sight.registries[scope] = fresh.facts[scope], fresh.registries[scope]
	}
	e.sight.credentials, e.sight.cluster = fresh.credentials, fresh.cluster
	e.sight.laid, e.sight.other, e.sight.borne = fresh.laid, fresh.other, fresh.borne
	return e.copySight(), nil
}

// current returns a copy of the last sight.
func (e *Engine) current() sight {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.copySight()
}

func (e *Engine) copySight() sight {
	s := e.sight
	s.facts, s.unreached, s.registries = maps.Clone(s.facts), maps.Clone(s.unreached), maps.Clone(s.registries)
	return s
}

// look probes a machine, and reads its registry mirrors where the probe leaves
// open whether they are as wanted.
func (e *Engine) look(ctx context.Context, m inventory.Machine) (host.Facts, []byte, error) {
	on := e.fleet.on(m.Name)
	facts, err := host.Probe(ctx, on, e.want.probe(m))
	if err == nil {
		var seen k3s.Seen
		want := k3s.Want{Role: m.Role, ImageMirror: e.want.config.Spec.Sources.Images.URL}
		want.Registries, _, _ = e.want.registries()
		if seen, err = k3s.Observe(ctx, on, want, k3s.See(facts, e.want.key)); err == nil {
			e.settings.Sink.Emit(event.Event{Kind: event.MachineObserved, Machine: m.Name, Text: summary(facts)})
			return facts, seen.Registries, nil
		}
	}
	err = unreached(err)
	e.settings.Sink.Emit(event.Event{Kind: event.MachineFailed, Machine: m.Name, Error: err.Error()})
	return host.Facts{}, nil, err
}

// unreached leaves the error of a connection as it is: what was to be done over
// it adds nothing.
func unreached(err error) error {
	var connect *remote.ConnectError
	var sudo *remote.SudoError
	switch {
	case errors.As(err, &connect):
		return connect
	case errors.As(err, &sudo):
		return sudo
	}
	return err
}

// named puts the machine before an error that does not begin with it.
func named(machine string, err error) error {
	if strings.HasPrefix(err.Error(), machine+":") {
		return err
	}
	return fmt.Errorf("%s: %w", machine, err)
}

// stopped is the error of a run that findings or unreached machines stop, as a
// whole or in part.
func (e *Engine) stopped(s sight, b book) error {
	var errs []error
	for _, m := range e.want.machines {
		if err := s.unreached[m.Name]; err != nil {
			errs = append(errs, named(m.Name, err))
		}
	}
	if err := e.want.existingUnreached(s); err != nil {
		errs = append(errs, err)
	}
	var blocking []diag.Finding
	for _, f := range b.findings {
		if f.Severity == diag.Blocks {
			blocking = append(blocking, f)
		}
	}
	if len(blocking) > 0 {
		errs = append(errs, &BlockedError{Findings: blocking})
	}
	return errors.Join(errs...)
}
