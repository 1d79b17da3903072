package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/kube"
)

// DrainOptions choose what is drained and what may be lost by it.
type DrainOptions struct {
	Nodes []string
	// Drain are the decisions that cost someone something. Disruption budgets are always kept.
	Drain kube.DrainOptions
	// Confirm as in ApplyOptions.
	Confirm func(context.Context, PlanResult) error
}

// NotANodeError says that the cluster has no node of that name.
type NotANodeError struct{ Name string }

func (e *NotANodeError) Error() string { return e.Name + " is not a node of the cluster" }

// CordonNodes keeps new pods away from nodes, or lets them come again. Nodes
// that are so already stay untouched.
func (e *Engine) CordonNodes(ctx context.Context, names []string, on bool) (ApplyResult, error) {
	s, err := e.observeAPI(ctx)
	if err != nil {
		return ApplyResult{}, err
	}
	do := e.doer()
	var actions []plan.Action
	var missing []error
	for _, name := range names {
		n, joined := s.cluster.state.Node(name)
		switch {
		case !joined:
			missing = append(missing, &NotANodeError{name})
		case n.Cordoned != on:
			actions = append(actions, cordon(name, on, do))
		}
	}
	return e.onNodes(ctx, s, book{actions: actions}, nil, nil, missing)
}

func cordon(node string, on bool, do doer) plan.Action {
	a := plan.Action{
		ID: node + "/cordon", Machine: node, Title: "cordon the node", Reason: "new pods are to stay away", Timeout: time.Minute,
		Apply: func(ctx context.Context, _ plan.Say) error {
			client, _, err := do.api.connect(ctx)
			if err != nil {
				return err
			}
			return client.Cordon(ctx, node, on)
		},
	}
	if !on {
		a.ID, a.Title, a.Reason = node+"/uncordon", "uncordon the node", "pods may come again"
	}
	return a
}

// DrainNodes cordons nodes and evicts their pods. A node with pods that no
// decision covers is left as it is, and each pod is named in a finding.
func (e *Engine) DrainNodes(ctx context.Context, o DrainOptions) (ApplyResult, error) {
	s, err := e.observeAPI(ctx)
	if err != nil {
		return ApplyResult{}, err
	}
	do := e.doer()
	b := book{}
	var missing []error
	for _, name := range o.Nodes {
		if _, joined := s.cluster.state.Node(name); !joined {
			missing = append(missing, &NotANodeError{name})
			continue
		}
		in, err := e.blockers(ctx, name, o.Drain)
		if err != nil {
			return ApplyResult{}, err
		}
		if len(in) > 0 {
			b.findings = append(b.findings, drainFindings(name, in)...)
			continue
		}
		b.actions = append(b.actions, drain(name, "it is to be emptied", o.Drain, do))
	}
	return e.onNodes(ctx, s, b, o.Confirm, nil, missing)
}

// drain empties a node. What stands in its way shows before; budgets only here.
func drain(node, reason string, o kube.DrainOptions, do doer) plan.Action {
	limit := o.Limit
	if limit == 0 {
		limit = 5 * time.Minute
	}
	a := plan.Action{
		ID: node + "/drain", Machine: node, Title: "drain the node", Reason: reason,
		Changes: []string{fmt.Sprintf("evict its pods within %s; disruption budgets are kept", limit)},
		Consent: plan.ConsentDrain, Timeout: limit + time.Minute,
		Apply: func(ctx context.Context, say plan.Say) error {
			client, _, err := do.api.connect(ctx)
			if err != nil {
				return err
			}
			return client.Drain(ctx, node, o, say)
		},
	}
	if o.DeleteBare {
		a.Changes = append(a.Changes, "pods without a controller are deleted for good")
	}
	if o.DeleteLocalData {
		a.Changes = append(a.Changes, "data in emptyDir volumes is lost")
	}
	return a
}

func (e *Engine) blockers(ctx context.Context, node string, o kube.DrainOptions) ([]kube.Blocker, error) {
	client, _, err := e.api.connect(ctx)
	if err != nil {
		return nil, err
	}
	in, err := client.DrainBlockers(ctx, node, o)
	if err != nil {
		return nil, fmt.Errorf("looking at the pods of %s: %w", node, err)
	}
	return in, nil
}

func drainFindings(node string, in []kube.Blocker) []diag.Finding {
	var out []diag.Finding
	for _, b := range in {
		out = append(out, diag.Found("drain-blocked", node, "pod "+b.Pod+": "+b.Reason))
	}
	return out
}

// observeAPI looks at the cluster and at no machine but the server on the way.
func (e *Engine) observeAPI(ctx context.Context) (sight, error) {
	s := sight{}
	e.observeCluster(ctx, &s)
	if !s.cluster.there() {
		return s, e.noCluster(ctx, s)
	}
	return s, nil
}

// onNodes confirms and runs actions on nodes. left are the reasons why some
// nodes of those asked for are left out; the others are served all the same.
func (e *Engine) onNodes(ctx context.Context, s sight, b book, confirm func(context.Context, PlanResult) error, replan plan.Replan, left []error) (ApplyResult, error) {
	start := time.Now()
	e.tell.findings(b.findings)
	result := ApplyResult{PlanResult: e.nodePlan(s, b), Outcomes: []OutcomeView{}}
	stopped := errors.Join(append(left, e.stopped(s, b))...)
	if len(b.actions) == 0 {
		result.Nodes = e.nodeViews(s)
		return result, stopped
	}
	if confirm != nil {
		if err := confirm(ctx, result.PlanResult); err != nil {
			return result, errors.Join(err, stopped)
		}
	}
	ctx, release, err := e.lock(ctx)
	if err != nil {
		return result, errors.Join(err, stopped)
	}
	defer release()
	e.tell.plan(b.actions)
	run := plan.Executor{Consents: consents(b.actions), Observer: e.tell, Replan: replan}.Run(ctx, b.actions)
	result.Outcomes, result.Changed = outcomes(run), run.Changed()
	e.observeCluster(ctx, &s)
	result.Nodes = e.nodeViews(s)
	result.Traffic, result.Seconds = e.fleet.traffic(), time.Since(start).Seconds()
	return result, errors.Join(run.Err(), stopped, lockLost(ctx))
}

// nodePlan is the plan of a change to some nodes, with the machines that were looked at.
func (e *Engine) nodePlan(s sight, b book) PlanResult {
	r := e.planResult(s, b)
	r.Machines = slices.DeleteFunc(r.Machines, func(v MachineView) bool {
		_, seen := s.facts[v.Name]
		return !seen && s.unreached[v.Name] == nil
	})
	return r
}
