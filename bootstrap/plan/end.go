package plan

import (
	"context"
	"fmt"
	"sort"
	"strings"
)

// idle says whether nothing runs and nothing can start.
func (w *walk) idle() bool {
	if len(w.running) > 0 {
		return false
	}
	for _, h := range w.held {
		if h {
			return false
		}
	}
	return true
}

// verify asks for the plans of all scopes that changed since they were last
// observed, and says whether any was asked for.
func (w *walk) verify(ctx context.Context) bool {
	if w.exec.Replan == nil || len(w.pending) > 0 {
		return false
	}
	var scopes []string
	for s := range w.dirty {
		scopes = append(scopes, s)
	}
	sort.Strings(scopes)
	asked := false
	for _, s := range scopes {
		if w.failedIn(s) {
			continue
		}
		w.rounds[s]++
		w.replan(ctx, s)
		asked = true
	}
	return asked
}

func (w *walk) failedIn(scope string) bool {
	for _, o := range w.report.Outcomes {
		if o.Action.Machine == scope && (o.Status == Failed || o.Status == Blocked) {
			return true
		}
	}
	return false
}

// closeRemaining ends what never started: cancelled, or waiting for itself.
func (w *walk) closeRemaining(ctx context.Context) {
	for _, a := range w.pending {
		if ctx.Err() != nil {
			w.close(Outcome{Action: a, Status: Cancelled, Err: context.Cause(ctx)})
			continue
		}
		w.close(Outcome{Action: a, Status: Failed, Err: fmt.Errorf("%w: %s waits for %s", ErrCycle, a.ID, strings.Join(append(a.Needs, a.After...), ", "))})
	}
	w.pending = nil
}
