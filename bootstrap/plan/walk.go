package plan

import (
	"context"
	"errors"
	"fmt"
)

// walk is the state of one run. Only the goroutine of Executor.Run touches it;
// actions and replans report over events.
type walk struct {
	exec    Executor
	pending []Action          // not started, in plan order
	running map[string]Action // by ID
	failed  map[string]error  // ID -> why it will never be done in this run
	done    map[string]string // ID -> reason it was done for
	cut     map[string]string // ID -> scope, of actions that were cut off and not yet seen again
	held    map[string]bool   // scopes being planned again
	again   map[string]bool   // scopes to plan again once more after the replan that is under way
	dirty   map[string]bool   // scopes changed since they were last observed
	rounds  map[string]int
	events  chan happening
	report  Report
}

// happening is what reaches the loop: an ended action or an ended replan.
type happening struct {
	outcome *Outcome
	scope   string
	actions []Action
	err     error
}

func newWalk(e Executor, actions []Action) *walk {
	return &walk{
		exec: e, pending: append([]Action(nil), actions...),
		running: map[string]Action{}, failed: map[string]error{}, done: map[string]string{},
		cut: map[string]string{}, held: map[string]bool{}, again: map[string]bool{}, dirty: map[string]bool{},
		rounds: map[string]int{}, events: make(chan happening),
	}
}

// startReady starts every pending action whose needs are met and blocks those
// whose needs failed.
func (w *walk) startReady(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	for changed := true; changed; {
		changed = false
		for i := 0; i < len(w.pending); i++ {
			a := w.pending[i]
			if w.held[a.Machine] || len(w.running) >= w.exec.parallel() {
				continue
			}
			why := w.obstacle(a)
			if why == nil && w.waits(a) {
				continue
			}
			w.pending = append(w.pending[:i], w.pending[i+1:]...)
			i--
			changed = true
			if why != nil {
				w.close(Outcome{Action: a, Status: Blocked, Err: why})
				continue
			}
			w.start(ctx, a)
		}
	}
}

// obstacle says why an action can never start.
func (w *walk) obstacle(a Action) error {
	if a.Consent != "" && !w.exec.Consents[a.Consent] {
		return fmt.Errorf("%w: %s", ErrConsent, a.Consent)
	}
	for _, id := range a.Needs {
		if why, failed := w.failed[id]; failed {
			var deeper *NeedsError
			if errors.As(why, &deeper) {
				return deeper
			}
			return &NeedsError{Root: id, Err: why}
		}
	}
	return nil
}

// waits says whether something the action needs is still under way.
func (w *walk) waits(a Action) bool {
	for _, id := range append(append([]string(nil), a.Needs...), a.After...) {
		if _, runs := w.running[id]; runs {
			return true
		}
		for _, p := range w.pending {
			if p.ID == id {
				return true
			}
		}
	}
	return false
}

func (w *walk) start(ctx context.Context, a Action) {
	w.running[a.ID] = a
	w.dirty[a.Machine] = true
	if w.exec.Observer != nil {
		w.exec.Observer.Started(a)
	}
	go func() {
		o := w.exec.apply(ctx, a)
		w.events <- happening{outcome: &o}
	}()
}

// settle takes in one ended action or replan.
func (w *walk) settle(ctx context.Context, h happening) {
	if h.outcome == nil {
		w.takePlan(ctx, h)
		return
	}
	o := *h.outcome
	delete(w.running, o.Action.ID)
	switch o.Status {
	case Done:
		w.done[o.Action.ID] = o.Action.Reason
		delete(w.cut, o.Action.ID)
	case CutOff:
		w.cut[o.Action.ID] = o.Action.Machine
	}
	if o.Status == CutOff && w.exec.Replan == nil {
		o.Status = Failed
	}
	w.close(o)
	if o.Status == CutOff || (o.Status == Done && o.Action.Barrier) {
		w.rounds[o.Action.Machine]++
		w.replan(ctx, o.Action.Machine)
		if o.Action.Machine != "" && o.Status == Done {
			w.replan(ctx, "")
		}
	}
}

// replan asks for the scope's plan, unless that is under way already: then it
// is asked for once more afterwards, because the answer may be too old.
func (w *walk) replan(ctx context.Context, scope string) {
	if w.exec.Replan == nil || ctx.Err() != nil {
		return
	}
	if w.held[scope] {
		w.again[scope] = true
		return
	}
	w.held[scope] = true
	delete(w.dirty, scope)
	go func() {
		actions, err := w.exec.Replan(ctx, scope)
		w.events <- happening{scope: scope, actions: actions, err: err}
	}()
}

// takePlan replaces the pending actions of a scope by what observing it again asks for.
func (w *walk) takePlan(ctx context.Context, h happening) {
	w.held[h.scope] = false
	if w.again[h.scope] && ctx.Err() == nil {
		w.again[h.scope] = false
		w.replan(ctx, h.scope)
		return
	}
	if h.err != nil {
		w.failScope(h.scope, fmt.Errorf("observing again: %w", h.err))
		return
	}
	var rest []Action
	for _, p := range w.pending {
		if p.Machine != h.scope {
			rest = append(rest, p)
		}
	}
	w.pending = rest
	for _, a := range h.actions {
		w.admit(a)
	}
	for id, scope := range w.cut {
		if scope == h.scope {
			delete(w.cut, id)
		}
	}
}

// admit adds an action of a new plan unless it runs already or proves that the scope does not converge.
func (w *walk) admit(a Action) {
	if _, runs := w.running[a.ID]; runs {
		return
	}
	if _, failed := w.failed[a.ID]; failed {
		return
	}
	reason, was := w.done[a.ID]
	if was && a.Ahead {
		return
	}
	if (was && reason == a.Reason) || w.rounds[a.Machine] > w.exec.rounds() {
		w.close(Outcome{Action: a, Status: Failed, Err: fmt.Errorf("%w: %s", ErrNotConverged, a.Reason)})
		return
	}
	w.pending = append(w.pending, a)
}

// failScope ends everything pending in a scope; where nothing was pending the failure itself is recorded.
func (w *walk) failScope(scope string, err error) {
	var rest []Action
	hit := false
	for _, p := range w.pending {
		if p.Machine != scope {
			rest = append(rest, p)
			continue
		}
		hit = true
		w.close(Outcome{Action: p, Status: Failed, Err: err})
	}
	w.pending = rest
	for id, of := range w.cut {
		if of == scope {
			hit = true
			w.close(Outcome{Action: Action{ID: id, Machine: scope, Title: "observe again"}, Status: Failed, Err: err})
		}
	}
	if !hit && !errors.Is(err, context.Canceled) {
		w.close(Outcome{Action: Action{ID: scope + "/observe", Machine: scope, Title: "observe again"}, Status: Failed, Err: err})
	}
}

// close records an outcome.
func (w *walk) close(o Outcome) {
	switch o.Status {
	case Failed, Blocked, Cancelled:
		w.failed[o.Action.ID] = o.Err
	}
	w.report.Outcomes = append(w.report.Outcomes, o)
	if w.exec.Observer != nil {
		w.exec.Observer.Finished(o)
	}
}
