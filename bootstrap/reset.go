package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/bootstrap/k3s"
	"github.com/gpuctl/gpuctl/bootstrap/nvidia"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/internal/event"
	"github.com/gpuctl/gpuctl/internal/inventory"
	"github.com/gpuctl/gpuctl/internal/kube"
)

// Reset takes nodes or the whole cluster apart: k3s, its data, network and files
// go; the Container Toolkit stays, and so does the driver unless it is asked for and
// gpuctl installed it. A single node is drained first and its
// Node object goes with it. Machines that are not reached are named in the error
// and the others are reset all the same.
func (e *Engine) Reset(ctx context.Context, o ResetOptions) (ApplyResult, error) {
	if e.want.existing() != nil && len(e.want.machines) == 0 {
		return ApplyResult{}, errors.New("resetting: gpuctl made no machine of this cluster, and takes apart only what it made; the GPU Operator goes with helm uninstall")
	}
	start := time.Now()
	s, err := e.observe(ctx)
	if err != nil {
		return ApplyResult{}, err
	}
	if err := e.want.notOurs(s, e.want.namesOr(o.Nodes)); err != nil {
		return ApplyResult{}, err
	}
	do := e.doer()
	actions, err := e.want.resetActions(s, do, o)
	if err != nil {
		return ApplyResult{}, err
	}
	if o.Driver {
		e.tellOfDrivers(s, o.Nodes)
	}
	b := book{actions: actions, out: map[string]bool{}}
	result := ApplyResult{PlanResult: e.planResult(s, b)}
	if o.Confirm != nil && len(actions) > 0 {
		if err := o.Confirm(ctx, result.PlanResult); err != nil {
			return result, err
		}
	}
	e.tell.plan(actions)
	run := plan.Executor{
		Consents: consents(actions), Observer: e.tell,
		Replan: func(ctx context.Context, scope string) ([]plan.Action, error) {
			return e.replanReset(ctx, do, o, scope)
		},
	}.Run(ctx, actions)
	result.Outcomes, result.Changed = outcomes(run), run.Changed()
	result.Traffic, result.Seconds = e.fleet.traffic(), time.Since(start).Seconds()
	return result, errors.Join(run.Err(), e.stopped(s, b))
}

// replanReset looks at a machine again: what a reset left over is still pending.
func (e *Engine) replanReset(ctx context.Context, do doer, o ResetOptions, scope string) ([]plan.Action, error) {
	if scope == "" {
		return nil, nil
	}
	s := e.current()
	facts, _, err := e.look(ctx, e.fleet.on(scope).machine)
	if err != nil {
		return nil, err
	}
	s.facts[scope] = facts
	if len(o.Nodes) > 0 || e.want.existing() != nil { // a cluster that goes on: whether the node has left shows there
		e.observeCluster(ctx, &s)
	}
	actions, err := e.want.resetActions(s, do, o)
	return ofScope(actions, scope), err
}

// tellOfDrivers says of machines whose driver is not gpuctl's that it stays.
func (e *Engine) tellOfDrivers(s sight, nodes []string) {
	for _, m := range e.want.machines {
		facts, seen := s.facts[m.Name]
		if seen && (len(nodes) == 0 || slices.Contains(nodes, m.Name)) && facts.Driver.Value.LoadedVersion != "" && !nvidia.OwnDriver(facts) {
			e.settings.Sink.Emit(event.Event{Kind: event.Note, Machine: m.Name, Text: "the driver came with the machine and stays"})
		}
	}
}

// resetActions plans a reset. It is pure.
func (w wanted) resetActions(s sight, do doer, o ResetOptions) ([]plan.Action, error) {
	nodes := o.Nodes
	// Machines that joined somebody else's cluster leave it; it goes on without them.
	whole := len(nodes) == 0 && w.existing() == nil
	if len(nodes) == 0 && !whole {
		for _, m := range w.machines {
			nodes = append(nodes, m.Name)
		}
	}
	for _, m := range w.serverList() {
		if !whole && slices.Contains(nodes, m.Name) && len(nodes) < len(w.machines) {
			return nil, fmt.Errorf("resetting %s: it is %s; reset the whole cluster (no names) or other nodes", m.Name, w.whichServer())
		}
	}
	var actions []plan.Action
	for _, m := range w.machines {
		facts, seen := s.facts[m.Name]
		if !seen || (!whole && !slices.Contains(nodes, m.Name)) {
			continue
		}
		var needs []string
		if !whole {
			leave := w.leave(m, s, do)
			actions = append(actions, leave...)
			for _, a := range leave {
				needs = append(needs, a.ID)
			}
		}
		want := w.k3s(m, s, Network{})
		off := k3s.ResetPlan(want, k3s.See(facts, w.key), k3s.ResetOptions{}, do.on(m.Name), needs...)
		actions = append(actions, off...)
		for _, a := range off {
			needs = append(needs, a.ID)
		}
		actions = append(actions, host.ResetPlan(m.Name, facts, do.on(m.Name), k3s.ResetID(m.Name))...)
		if o.Driver {
			actions = append(actions, nvidia.RemovePlan(m.Name, facts, do.on(m.Name), needs...)...)
		}
	}
	return actions, nil
}

// leave drains a node and deletes it, while the cluster goes on without it.
func (w wanted) leave(m inventory.Machine, s sight, do doer) []plan.Action {
	if _, joined := s.cluster.state.Node(m.Name); !joined {
		return nil
	}
	drain := plan.Action{
		ID: m.Name + "/drain", Machine: m.Name, Title: "drain the node", Reason: "it leaves the cluster",
		Consent: plan.ConsentDrain, Timeout: 10 * time.Minute,
		Apply: func(ctx context.Context, say plan.Say) error {
			client, _, err := do.api.connect(ctx)
			if err != nil {
				return err
			}
			return client.Drain(ctx, m.Name, kube.DrainOptions{}, say)
		},
	}
	remove := plan.Action{
		ID: m.Name + "/node-delete", Machine: m.Name, Title: "delete the node and its password", Reason: "it leaves the cluster",
		Consent: plan.ConsentUninstall, Needs: []string{drain.ID}, Timeout: time.Minute,
		Apply: func(ctx context.Context, _ plan.Say) error {
			client, _, err := do.api.connect(ctx)
			if err != nil {
				return err
			}
			return client.DeleteNode(ctx, m.Name)
		},
	}
	return []plan.Action{drain, remove}
}

// whichServer says what resetting a server alone would mean.
func (w wanted) whichServer() string {
	if len(w.serverList()) == 1 {
		return "the cluster's only server"
	}
	return "a server, whose member of etcd has to leave first (gpuctl node remove)"
}
