package plan

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Status is what became of an action.
type Status string

const (
	// Done: applied, and its post-condition held.
	Done Status = "done"
	// Failed: applied and failed; Err says why.
	Failed Status = "failed"
	// CutOff: the connection or the time ended in mid-action; its result was unknown
	// and the machine was observed again.
	CutOff Status = "cut-off"
	// Blocked: something it needs failed, or consent was not given.
	Blocked Status = "blocked"
	// Cancelled: the run was cancelled before or while it ran.
	Cancelled Status = "cancelled"
)

// Outcome is what became of one action in one round.
type Outcome struct {
	Action   Action
	Status   Status
	Err      error
	Started  time.Time
	Finished time.Time
	// LastSaid is the last line the action said.
	LastSaid string
}

// Elapsed is how long the action ran.
func (o Outcome) Elapsed() time.Duration {
	if o.Started.IsZero() {
		return 0
	}
	return o.Finished.Sub(o.Started)
}

// Report is every outcome of a run, in the order in which they ended.
type Report struct {
	Outcomes []Outcome
}

// Changed counts the actions that were done.
func (r Report) Changed() int { return r.count(Done) }

// Err is nil when every action was done (an action that was cut off and then
// found done or done again counts as done). Otherwise it joins the failures.
func (r Report) Err() error {
	last := map[string]Outcome{}
	var order []string
	for _, o := range r.Outcomes {
		if _, seen := last[o.Action.ID]; !seen {
			order = append(order, o.Action.ID)
		}
		last[o.Action.ID] = o
	}
	var errs []error
	for _, id := range order {
		switch o := last[id]; o.Status {
		case Failed, Cancelled:
			errs = append(errs, &ActionError{Action: o.Action, Status: o.Status, Err: o.Err})
		case Blocked:
			// What waits for a failure is not one more failure.
			var needs *NeedsError
			if !errors.As(o.Err, &needs) {
				errs = append(errs, &ActionError{Action: o.Action, Status: o.Status, Err: o.Err})
			}
		}
	}
	return errors.Join(errs...)
}

func (r Report) count(s Status) int {
	n := 0
	for _, o := range r.Outcomes {
		if o.Status == s {
			n++
		}
	}
	return n
}

// ActionError is the failure of one action.
type ActionError struct {
	Action Action
	Status Status
	Err    error
}

func (e *ActionError) Error() string {
	where := e.Action.Machine
	if where == "" {
		where = "cluster"
	}
	// Errors of commands name their machine too; once is enough.
	return fmt.Sprintf("%s: %s: %s", where, e.Action.Title, strings.TrimPrefix(e.Err.Error(), where+": "))
}

func (e *ActionError) Unwrap() error { return e.Err }

// NeedsError says that an action was not started, because one that it needs,
// directly or through others, was not done.
type NeedsError struct {
	// Root is the ID of the action that failed by itself.
	Root string
	// Err is why.
	Err error
}

func (e *NeedsError) Error() string { return "not started: it needs " + e.Root }

// Unwrap returns the failure of the root.
func (e *NeedsError) Unwrap() error { return e.Err }

var (
	// ErrNotConverged: an action was done, and observing again asks for it for the
	// same reason. Repeating would not help; what undoes it must be found.
	ErrNotConverged error = notConverged{}
	// ErrConsent: the action needs a consent that was not given.
	ErrConsent = errors.New("consent is missing")
	// ErrCycle: actions need each other.
	ErrCycle = errors.New("actions wait for each other")
)

type notConverged struct{}

func (notConverged) Error() string { return "done, but still needed: not converged" }

// DiagCode names the entry of the failure catalogue.
func (notConverged) DiagCode() string { return "not-converged" }
