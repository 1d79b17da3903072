package main

import (
	"io"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap"
	"github.com/gpuctl/gpuctl/internal/ui"
)

// applyText is the summary of a run: what it came to and what to do next.
func (s *session) applyText(out io.Writer, r bootstrap.ApplyResult, failed error) error {
	w := &writer{w: out}
	s.findingsText(w, r.CheckResult)
	if len(r.Nodes) > 0 {
		w.gap()
		w.do(nodeTable(w, r.Nodes))
	}
	w.gap()
	s.failures(w, r)
	took := ui.Duration(time.Duration(r.Seconds * float64(time.Second)))
	var gpus, proven int64
	for _, n := range r.Nodes {
		count := n.Allocatable / max(n.Replicas, 1)
		gpus += count
		if n.Proven {
			proven += count
		}
	}
	switch {
	case failed != nil:
		w.linef("%s: %s done in %s; the run failed. What is done stays: %s goes on from there.", r.Cluster, plural(r.Changed, "change"), took, s.command("apply"))
	case r.Changed == 0:
		w.linef("%s: nothing changed (%s). %s, %d of %s proven.", r.Cluster, took, plural(len(r.Nodes), "node"), proven, plural(int(gpus), "GPU"))
	default:
		w.linef("%s: %s in %s. %s, %d of %s proven.", r.Cluster, plural(r.Changed, "change"), took, plural(len(r.Nodes), "node"), proven, plural(int(gpus), "GPU"))
	}
	if s.record != nil {
		w.linef("record: %s", s.record.Path())
	}
	if failed == nil {
		w.linef("\nNext:")
		w.linef("  %s && export KUBECONFIG=kubeconfig", s.command("kubeconfig --to kubeconfig"))
		w.linef("  %s", s.command("status"))
	}
	return w.err
}

// outcomesText is the summary of a reset and what to do next.
func (s *session) outcomesText(out io.Writer, r bootstrap.ApplyResult, failed error) error {
	w := &writer{w: out}
	s.findingsText(w, r.CheckResult)
	s.failures(w, r)
	w.linef("%s: %s in %s", r.Cluster, plural(r.Changed, "change"), ui.Duration(time.Duration(r.Seconds*float64(time.Second))))
	if s.record != nil {
		w.linef("record: %s", s.record.Path())
	}
	switch {
	case failed != nil:
		w.linef("\nNext: %s goes on with what is left", s.command("reset"))
	case r.Changed > 0:
		w.linef("\nNext: %s makes it again", s.command("apply"))
	}
	return w.err
}

// failures tells what failed, with its reason, and names in one line a machine
// what was not started because of it.
func (s *session) failures(w *writer, r bootstrap.ApplyResult) {
	waiting := map[string][]string{}
	var scopes []string
	for _, o := range r.Outcomes {
		switch o.Status {
		case "done", "cut-off":
		case "blocked", "cancelled":
			if len(waiting[o.Machine]) == 0 {
				scopes = append(scopes, o.Machine)
			}
			waiting[o.Machine] = append(waiting[o.Machine], ui.Clean(o.Title))
		default:
			w.linef("%s  %s: %s", nameOf(o.Machine), ui.Clean(o.Title), o.Status)
			w.linef("    %s", ui.Clean(o.Error))
			if o.Code != "" {
				explained(w, o.Code)
			}
		}
	}
	for _, scope := range scopes {
		w.linef("%s  not done: %s", nameOf(scope), strings.Join(waiting[scope], ", "))
	}
}
