package bootstrap

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuctl/gpuctl/bootstrap/nvidia"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/charts"
	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/event"
	"github.com/gpuctl/gpuctl/internal/smoke"
)

func unprovenTaint() corev1.Taint {
	return corev1.Taint{Key: charts.UnprovenTaint, Effect: corev1.TaintEffectNoSchedule}
}

func gpus(n int) string {
	if n == 1 {
		return "1 GPU"
	}
	return fmt.Sprintf("%d GPUs", n)
}

func (n narrator) smoke(node, format string, args ...any) {
	n.sink.Emit(event.Event{Kind: event.ActionProgress, Machine: node, Action: smokeID(node), Text: fmt.Sprintf(format, args...)})
}

func smokeResult(cluster string, reports ...smoke.Report) SmokeResult {
	r := SmokeResult{Cluster: cluster, Passed: len(reports) > 0, Nodes: []SmokeNode{}, Reports: reports}
	for _, report := range reports {
		r.Passed = r.Passed && report.Passed
		for _, n := range report.Nodes {
			r.Nodes = append(r.Nodes, smokeNodeView(n))
		}
	}
	return r
}

func smokeNodeView(n smoke.NodeReport) SmokeNode {
	v := SmokeNode{Node: n.Node, Status: string(n.Status), Steps: []SmokeStep{}}
	for _, g := range n.GPUs {
		if g.Status == smoke.Passed {
			v.GPUs++
			v.UUIDs = append(v.UUIDs, g.UUID)
		}
	}
	for _, s := range n.Steps {
		v.Steps = append(v.Steps, SmokeStep{Name: s.Name, Status: string(s.Status), Detail: s.Detail, Seconds: s.Seconds})
	}
	if len(n.Findings) > 0 {
		v.Code = n.Findings[0].Code
	}
	return v
}

// withoutProofs leaves the tests out of a plan, and what waits for them stays.
func withoutProofs(actions []plan.Action) []plan.Action {
	var out []plan.Action
	for _, a := range actions {
		if !isProof(a) {
			out = append(out, a)
		}
	}
	return out
}

// lateFindings are those that only showed when actions were applied.
func lateFindings(r plan.Report) []diag.Finding {
	var found []diag.Finding
	for _, o := range r.Outcomes {
		var lacks *nvidia.NoCandidateError
		if o.Status == plan.Failed && errors.As(o.Err, &lacks) {
			found = append(found, lacks.Finding)
		}
	}
	return found
}

// isProof: an action of an existing cluster's node has no machine, so its name counts.
func isProof(a plan.Action) bool {
	return strings.HasSuffix(a.ID, smokeID("")) || strings.HasSuffix(a.ID, sharingProofID(""))
}

// runError is the error of a run: what failed as an action, and apart from it the
// nodes that did not prove their GPUs, which have an exit code of their own.
func runError(r plan.Report) error {
	var failed []string
	var rest plan.Report
	late := lateFindings(r)
	for _, o := range r.Outcomes {
		var lacks *nvidia.NoCandidateError
		if o.Status == plan.Failed && errors.As(o.Err, &lacks) {
			continue
		}
		var not *notProven
		if o.Status == plan.Failed && errors.As(o.Err, &not) {
			failed = append(failed, not.node)
			continue
		}
		rest.Outcomes = append(rest.Outcomes, o)
	}
	err := rest.Err()
	if len(late) > 0 {
		err = errors.Join(err, &BlockedError{Findings: late})
	}
	if len(failed) > 0 {
		err = errors.Join(err, &SmokeError{Nodes: failed})
	}
	return err
}

// smokeLog keeps the reports of a run, one for each node.
type smokeLog struct {
	mu      sync.Mutex
	reports []smoke.Report
}

func (l *smokeLog) add(r smoke.Report) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reports = append(l.reports, r)
}
