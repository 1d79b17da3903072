// Package event is what the engine says while it works. Printers turn events
// into text for people or JSON for programs; the run record keeps them all.
package event

import "time"

// Kind names what happened.
type Kind string

const (
	// RunStarted opens a run. Text is the command line's verb.
	RunStarted Kind = "run-started"
	// MachineConnected: Text is how (user@host:port, host key fingerprint).
	MachineConnected Kind = "machine-connected"
	// MachineObserved: the probe came back. Text is a one-line summary of the machine.
	MachineObserved Kind = "machine-observed"
	// MachineFailed: the machine takes no further part. Error says why.
	MachineFailed Kind = "machine-failed"
	// FindingRaised carries a finding: Code, Text (evidence), Severity.
	FindingRaised Kind = "finding"
	// PlanMade: Text is "n actions".
	PlanMade Kind = "plan-made"
	// ActionPending lists an action of the plan: Action, Text (title), Reason.
	ActionPending Kind = "action-pending"
	// ActionStarted, ActionProgress, ActionDone and ActionFailed follow one action.
	ActionStarted  Kind = "action-started"
	ActionProgress Kind = "action-progress"
	ActionDone     Kind = "action-done"
	ActionFailed   Kind = "action-failed"
	// ActionBlocked: something it needs failed.
	ActionBlocked Kind = "action-blocked"
	// Note is a line for people that no program should rely on.
	Note Kind = "note"
	// RunFinished closes a run. Text is the summary line, Error the reason of a failure.
	RunFinished Kind = "run-finished"
)

// Event is one thing that happened. It never carries a secret.
type Event struct {
	Time    time.Time `json:"time"`
	Kind    Kind      `json:"kind"`
	Machine string    `json:"machine,omitempty"`
	Action  string    `json:"action,omitempty"`
	// Needs are the actions that a started one had to wait for.
	Needs    []string `json:"needs,omitempty"`
	Text     string   `json:"text,omitempty"`
	Reason   string   `json:"reason,omitempty"`
	Code     string   `json:"code,omitempty"`
	Severity string   `json:"severity,omitempty"`
	Error    string   `json:"error,omitempty"`
	// Seconds is how long the finished thing took.
	Seconds float64 `json:"seconds,omitempty"`
}

// Sink takes events. Implementations are safe for concurrent use and never block for long.
type Sink interface {
	Emit(Event)
}

// SinkFunc is a function as a Sink.
type SinkFunc func(Event)

// Emit calls f.
func (f SinkFunc) Emit(e Event) { f(e) }

// Discard drops every event.
func Discard() Sink { return SinkFunc(func(Event) {}) }

// Tee sends every event to all sinks, in order.
func Tee(sinks ...Sink) Sink {
	return SinkFunc(func(e Event) {
		for _, s := range sinks {
			s.Emit(e)
		}
	})
}
