package bootstrap

import (
	"fmt"
	"slices"

	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/event"
)

// narrator turns what the executor does into events.
type narrator struct{ sink event.Sink }

func (n narrator) Started(a plan.Action) {
	n.sink.Emit(event.Event{Kind: event.ActionStarted, Machine: a.Machine, Action: a.ID, Text: a.Title, Reason: a.Reason,
		Needs: slices.Concat(a.Needs, a.After)})
}

func (n narrator) Said(a plan.Action, line string) {
	n.sink.Emit(event.Event{Kind: event.ActionProgress, Machine: a.Machine, Action: a.ID, Text: line})
}

func (n narrator) Finished(o plan.Outcome) {
	if o.Status == plan.Cancelled && o.Started.IsZero() {
		return // the end of the run says it once for all that never began
	}
	e := event.Event{Machine: o.Action.Machine, Action: o.Action.ID, Text: o.Action.Title, Seconds: o.Elapsed().Seconds()}
	switch o.Status {
	case plan.Done:
		e.Kind = event.ActionDone
	case plan.Blocked:
		e.Kind = event.ActionBlocked
	default:
		e.Kind = event.ActionFailed
	}
	if o.Err != nil {
		e.Error = o.Err.Error()
		if p, ok := diag.Explain(o.Err); ok {
			e.Code = string(p.Code)
		}
	}
	n.sink.Emit(e)
}

func (n narrator) findings(fs []diag.Finding) {
	for _, f := range fs {
		n.sink.Emit(event.Event{Kind: event.FindingRaised, Machine: f.Machine, Code: string(f.Code), Severity: string(f.Severity), Text: f.Evidence})
	}
}

func (n narrator) plan(actions []plan.Action) {
	n.sink.Emit(event.Event{Kind: event.PlanMade, Text: fmt.Sprintf("%d actions", len(actions))})
	for _, a := range actions {
		n.sink.Emit(event.Event{Kind: event.ActionPending, Machine: a.Machine, Action: a.ID, Text: a.Title, Reason: a.Reason})
	}
}

func views(actions []plan.Action) []ActionView {
	out := make([]ActionView, 0, len(actions))
	for _, a := range actions {
		out = append(out, view(a))
	}
	return out
}

func view(a plan.Action) ActionView {
	return ActionView{ID: a.ID, Machine: a.Machine, Title: a.Title, Reason: a.Reason, Changes: a.Changes, Chosen: a.Chosen, Needs: a.Needs, Consent: string(a.Consent)}
}

func outcomes(r plan.Report) []OutcomeView {
	var out []OutcomeView
	for _, o := range r.Outcomes {
		v := OutcomeView{ActionView: view(o.Action), Status: string(o.Status), Seconds: o.Elapsed().Seconds()}
		if o.Err != nil {
			v.Error = o.Err.Error()
			if p, ok := diag.Explain(o.Err); ok {
				v.Code = string(p.Code)
			}
		}
		out = append(out, v)
	}
	return out
}
