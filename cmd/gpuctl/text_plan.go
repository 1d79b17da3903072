package main

import (
	"io"

	"github.com/gpuctl/gpuctl/bootstrap"
	"github.com/gpuctl/gpuctl/internal/ui"
)

// planText lists the actions under their machines, in the order of the plan.
func (s *session) planText(out io.Writer, r bootstrap.PlanResult) error {
	w := &writer{w: out}
	set := r.Set
	if r.Untested {
		set += ", untested"
	}
	unreached(w, r.Machines)
	switch {
	case len(r.Actions) == 0 && !wholeSeen(r.CheckResult):
		w.linef("%s (set %s): no plan is possible while machines are blocked or out of reach.", r.Cluster, set)
	case len(r.Actions) == 0:
		w.linef("%s is as gpuctl.yaml says (set %s): nothing to do.", r.Cluster, set)
	default:
		w.linef("%s (set %s): %s", r.Cluster, set, plural(len(r.Actions), "action"))
	}
	for _, scope := range scopes(r.Actions) {
		w.linef("\n%s", nameOf(scope))
		for _, a := range r.Actions {
			if a.Machine == scope {
				s.actionText(w, a)
			}
		}
	}
	s.findingsText(w, r.CheckResult)
	if len(r.Actions) > 0 {
		w.linef("\nNext: %s", s.command("apply"))
	}
	return w.err
}

// wholeSeen says that every machine was reached and none is blocked: only then
// does an empty plan mean that all is as wanted.
func wholeSeen(r bootstrap.CheckResult) bool {
	for _, m := range r.Machines {
		if m.State != bootstrap.Reached {
			return false
		}
	}
	return true
}

func (s *session) actionText(w *writer, a bootstrap.ActionView) {
	consent := ""
	if a.Consent != "" {
		consent = " [asks first: " + a.Consent + "]"
	}
	w.linef("  %s%s", ui.Clean(a.Title), consent)
	w.linef("      because %s", ui.Clean(a.Reason))
	for _, c := range a.Chosen {
		w.linef("      %s", ui.Clean(c))
	}
	if s.flags.verbose {
		for _, c := range a.Changes {
			w.linef("      + %s", ui.Clean(c))
		}
	}
}

// scopes are the machines of actions in the order in which they first appear.
func scopes(actions []bootstrap.ActionView) []string {
	var out []string
	seen := map[string]bool{}
	for _, a := range actions {
		if !seen[a.Machine] {
			seen[a.Machine] = true
			out = append(out, a.Machine)
		}
	}
	return out
}

func nameOf(machine string) string {
	if machine == "" {
		return "cluster"
	}
	return machine
}
