package plan

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	defaultParallel = 64
	defaultRounds   = 4
	defaultTimeout  = 10 * time.Minute
)

// Observer hears what the executor does. Calls come from several goroutines.
type Observer interface {
	Started(Action)
	Said(a Action, line string)
	Finished(Outcome)
}

// Replan observes a scope again (a machine's name, or "" for the cluster) and
// returns the actions that are still pending there.
type Replan func(ctx context.Context, scope string) ([]Action, error)

// Executor walks the graph of a plan: an action starts when what it needs is
// done, waits for nothing else, and runs under its own limit. After a barrier,
// after a cut-off command and at the end of the run the scope is planned again,
// so that needs which appear late come in.
type Executor struct {
	// Parallel bounds the actions running at once; 0 means 64.
	Parallel int
	// Rounds bounds how often one scope is planned again; 0 means 4.
	Rounds int
	// Consents are what the user agreed to.
	Consents map[Consent]bool
	// Replan is asked after barriers, cut-off commands and at the end; nil means never.
	Replan Replan
	// Observer may be nil.
	Observer Observer
}

// Run executes the actions and returns what became of each. It returns when
// nothing is left to do; after ctx ends it starts nothing more and waits for
// what runs (every action sees the same ctx and must end soon).
func (e Executor) Run(ctx context.Context, actions []Action) Report {
	w := newWalk(e, actions)
	for {
		w.startReady(ctx)
		if w.idle() {
			if ctx.Err() == nil && w.verify(ctx) {
				continue
			}
			break
		}
		w.settle(ctx, <-w.events)
	}
	w.closeRemaining(ctx)
	return w.report
}

func (e Executor) parallel() int {
	if e.Parallel > 0 {
		return e.Parallel
	}
	return defaultParallel
}

func (e Executor) rounds() int {
	if e.Rounds > 0 {
		return e.Rounds
	}
	return defaultRounds
}

// apply runs one action under its limit and turns its error into an outcome.
func (e Executor) apply(ctx context.Context, a Action) Outcome {
	limit := a.Timeout
	if limit == 0 {
		limit = defaultTimeout
	}
	var mu sync.Mutex
	last := ""
	say := func(format string, args ...any) {
		line := fmt.Sprintf(format, args...)
		mu.Lock()
		repeated := line == last
		last = line
		mu.Unlock()
		if e.Observer != nil && !repeated {
			e.Observer.Said(a, line)
		}
	}
	o := Outcome{Action: a, Started: time.Now()}
	actx, cancel := context.WithTimeout(ctx, limit)
	err := a.Apply(actx, say)
	overdue := actx.Err() != nil && ctx.Err() == nil
	cancel()
	o.Finished = time.Now()
	mu.Lock()
	o.LastSaid = last
	mu.Unlock()
	o.Status, o.Err = judge(ctx, err, overdue, limit, o.LastSaid)
	return o
}

func judge(ctx context.Context, err error, overdue bool, limit time.Duration, last string) (Status, error) {
	switch {
	case err == nil:
		return Done, nil
	case ctx.Err() != nil:
		return Cancelled, context.Cause(ctx)
	case overdue:
		if last == "" {
			last = "it said nothing"
		}
		return Failed, fmt.Errorf("gave up after %s (%s): %w", limit, last, err)
	case unknownResult(err):
		return CutOff, err
	}
	return Failed, err
}

// unknownResult says whether an error leaves open if the change was made. The
// error says so itself, so that this package need not know connections.
func unknownResult(err error) bool {
	var u interface{ UnknownResult() bool }
	return errors.As(err, &u) && u.UnknownResult()
}
