package bootstrap

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/bootstrap/k3s"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/inventory"
	"github.com/gpuctl/gpuctl/internal/kube"
)

// RemoveOptions choose what leaves the cluster and at what price.
type RemoveOptions struct {
	Nodes []string
	// Gone says that machines which are not reached are gone for good: their
	// nodes are deleted without them. Without it such a node stays.
	Gone bool
	// Drain are the decisions that cost someone something.
	Drain kube.DrainOptions
	// Confirm as in ApplyOptions.
	Confirm func(context.Context, PlanResult) error
}

// RemoveResult is what became of the nodes that were to leave.
type RemoveResult struct {
	ApplyResult
	// Removed are the names of which nothing is left: neither in the cluster, nor
	// on the machine where it was reached.
	Removed []string `json:"removed"`
}

// StaysError says why a node was not removed.
type StaysError struct {
	Node, Reason string
	// Err is why its machine was not reached; may be nil.
	Err error
}

func (e *StaysError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s stays: %s: %v", e.Node, e.Reason, e.Err)
	}
	return fmt.Sprintf("%s stays: %s", e.Node, e.Reason)
}

// Unwrap returns why the machine was not reached.
func (e *StaysError) Unwrap() error { return e.Err }

// leaver is what was seen of a node that is to leave.
type leaver struct {
	name     string
	machine  inventory.Machine
	listed   bool
	node     kube.Node
	joined   bool
	password bool
	blockers []kube.Blocker
}

// RemoveNodes drains nodes, deletes them with their passwords and takes k3s off
// their machines. A node in the way of which something stands is left out and
// the others leave all the same; the error joins the reasons.
func (e *Engine) RemoveNodes(ctx context.Context, o RemoveOptions) (RemoveResult, error) {
	result := RemoveResult{Removed: []string{}}
	s, err := e.observeLeaving(ctx, o.Nodes)
	if err != nil {
		return result, err
	}
	if err := e.want.notOurs(s, o.Nodes); err != nil {
		return result, err
	}
	do := e.doer()
	turns, err := e.want.leaving(o.Nodes, s)
	if err != nil {
		return result, err
	}
	b, reached := book{out: map[string]bool{}, findings: e.want.fewServers(o.Nodes, s)}, s
	reached.unreached = nil // a machine that is not reached is judged below
	var left []error
	for _, name := range turns {
		l, err := e.leaver(ctx, name, s, o)
		if err != nil {
			return result, err
		}
		actions, found, err := e.want.removeActions(l, s, do, o)
		b.actions = append(b.actions, e.want.inTurnOf(l, actions, b.actions, s, o.Nodes, do)...)
		b.findings = append(b.findings, found...)
		if err != nil {
			left, b.out[name] = append(left, err), true
		}
		b.out[name] = b.out[name] || len(found) > 0
	}
	result.ApplyResult, err = e.onNodes(ctx, reached, b, o.Confirm, e.replanRemove(do, o), left)
	if len(b.actions) == 0 || len(result.Outcomes) > 0 {
		result.Removed = removed(o.Nodes, b.out, result.Outcomes)
	}
	return result, err
}

// removed are the names with which nothing went wrong.
func removed(names []string, out map[string]bool, ended []OutcomeView) []string {
	last := map[string]string{}
	of := map[string]string{}
	for _, o := range ended {
		last[o.ID], of[o.ID] = o.Status, o.Machine
	}
	failed := map[string]bool{}
	for id, status := range last {
		failed[of[id]] = failed[of[id]] || status != string(plan.Done)
	}
	gone := []string{}
	for _, n := range names {
		if !out[n] && !failed[n] {
			gone = append(gone, n)
		}
	}
	return gone
}

// observeNodes looks at some machines and at the cluster, which has to be there.
func (e *Engine) observeNodes(ctx context.Context, names []string) (sight, error) {
	s := sight{facts: map[string]host.Facts{}, unreached: map[string]error{}, registries: map[string][]byte{}}
	var mu sync.Mutex
	var group errgroup.Group
	for _, name := range names {
		if e.fleet.on(name) == nil {
			continue // a node that is not listed has no machine here
		}
		group.Go(func() error {
			facts, registries, err := e.look(ctx, e.fleet.on(name).machine)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				s.unreached[name] = err
				return nil
			}
			s.facts[name], s.registries[name] = facts, registries
			return nil
		})
	}
	_ = group.Wait() // every failure stands in unreached
	if ctx.Err() != nil {
		return s, context.Cause(ctx)
	}
	e.observeCluster(ctx, &s)
	e.mu.Lock()
	e.sight = s
	e.mu.Unlock()
	if !s.cluster.there() {
		return s, e.noCluster(ctx, s)
	}
	return s, nil
}

// leaver asks the cluster what it knows of a node that is to leave.
func (e *Engine) leaver(ctx context.Context, name string, s sight, o RemoveOptions) (leaver, error) {
	l := leaver{name: name}
	l.machine, l.listed = e.settings.Inventory.Find(name)
	l.node, l.joined = s.cluster.state.Node(name)
	client, _, err := e.api.connect(ctx)
	if err != nil {
		return l, err
	}
	if l.password, err = client.HasNodePassword(ctx, name); err != nil {
		return l, err
	}
	if l.joined && (l.node.Ready || !o.Gone) {
		l.blockers, err = e.blockers(ctx, name, o.Drain)
	}
	return l, err
}

// removeActions plans how one node leaves. It is pure. The error says why it stays.
func (w wanted) removeActions(l leaver, s sight, do doer, o RemoveOptions) ([]plan.Action, []diag.Finding, error) {
	facts, reached := s.facts[l.name]
	switch {
	case !l.listed && !l.joined && !l.password:
		return nil, nil, &NotANodeError{l.name}
	case l.server() && len(w.serverList()) < 2:
		return nil, nil, &StaysError{Node: l.name, Reason: "it is the cluster's only server; gpuctl reset takes the whole cluster apart"}
	case !reached && l.joined && l.node.Ready:
		return nil, nil, &StaysError{Node: l.name, Err: s.unreached[l.name],
			Reason: "its node is Ready, so its machine runs and only the way to it is closed (a machine that went away is Ready for about a minute more)"}
	case !reached && !o.Gone:
		return nil, nil, &StaysError{Node: l.name, Reason: "its machine is not reached; if it is gone for good, say --gone", Err: s.unreached[l.name]}
	case len(l.blockers) > 0:
		return nil, drainFindings(l.name, l.blockers), nil
	}
	var actions []plan.Action
	var needs []string
	if l.joined && (l.node.Ready || !o.Gone) {
		a := drain(l.name, "it leaves the cluster", o.Drain, do)
		actions, needs = append(actions, a), []string{a.ID}
	}
	if l.server() && reached && l.joined {
		a := noRestart(l.name, needs, do)
		actions, needs = append(actions, a), []string{a.ID}
	}
	if l.joined || l.password {
		a := forgetNode(l.name, "it leaves the cluster", do)
		if l.server() {
			a = w.forgetServer(l.name, "it leaves the cluster", do)
		}
		a.Needs = needs
		actions, needs = append(actions, a), []string{a.ID}
	}
	if !reached {
		return actions, nil, nil
	}
	seen := k3s.See(facts, w.key)
	if _, ours := seen.Files[k3s.OwnConfig]; ours || l.joined {
		actions = append(actions, k3s.ResetPlan(w.k3s(l.machine, s, Network{}), seen, k3s.ResetOptions{}, do.on(l.name), needs...)...)
	}
	return actions, nil, nil
}

// forgetNode deletes a node and the password its machine had, which would keep
// a new machine of that name out.
func forgetNode(node, reason string, do doer) plan.Action {
	return plan.Action{
		ID: node + "/node-delete", Machine: node, Title: "delete the node and its password", Reason: reason,
		Consent: plan.ConsentUninstall, Timeout: time.Minute,
		Apply: func(ctx context.Context, _ plan.Say) error {
			client, _, err := do.api.connect(ctx)
			if err != nil {
				return err
			}
			return client.DeleteNode(ctx, node)
		},
	}
}

// replanRemove looks again at what a removal left over.
func (e *Engine) replanRemove(do doer, o RemoveOptions) plan.Replan {
	return func(ctx context.Context, scope string) ([]plan.Action, error) {
		if !slices.Contains(o.Nodes, scope) {
			return nil, nil
		}
		s := e.current()
		if _, reached := s.facts[scope]; reached {
			facts, _, err := e.look(ctx, e.fleet.on(scope).machine)
			if err != nil {
				return nil, err
			}
			s.facts[scope] = facts
		}
		e.observeCluster(ctx, &s)
		l, err := e.leaver(ctx, scope, s, o)
		if err != nil || (!l.listed && !l.joined && !l.password) {
			return nil, err
		}
		actions, _, err := e.want.removeActions(l, s, do, o)
		return actions, err
	}
}
