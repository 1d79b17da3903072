package bootstrap

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/nvidia"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/charts"
	"github.com/gpuctl/gpuctl/internal/inventory"
	"github.com/gpuctl/gpuctl/internal/kube"
)

// A move of the GPU half to another set goes by one node first. Its pods with GPUs
// leave, it gets the Container Toolkit and the operator's new pods, and proves its
// GPUs; only then the others follow. A set that does not serve costs one node, not
// all, and the way back is the old set.

// move is how far the operator's move to another version is.
type move int

const (
	// moveAll: there is no move, or nothing to go first.
	moveAll move = iota
	// moveOne: the release moves, its pods stay on all nodes but one.
	moveOne
	// moveRest: the release has moved, the pods of most nodes have not.
	moveRest
)

// restID is the action by which the operator's pods of the other nodes follow.
const restID = "cluster/gpu-operator-rest"

func operandsID(machine string) string { return machine + "/operands" }

// held is a wish under which the operator's pods on the nodes stay as they are.
func held(wish charts.Release) charts.Release {
	wish.Values = charts.HoldOperands(wish.Values)
	return wish
}

// moveOf says which part of a move comes next. Somebody else's release, and one
// whose user rolls its pods himself, changes as asked and at once.
func (w wanted) moveOf(b *book, s sight, step charts.Step, seen charts.State, rel charts.Release) move {
	if rel.Adopted || charts.OperandsHeld(rel.Values) || !w.oneCanMove(b, s) {
		return moveAll
	}
	from := seen.Version
	if seen.LastGood > 0 {
		from = seen.GoodVersion
	}
	asHeld, err := charts.HashValues(charts.HoldOperands(rel.Values))
	switch {
	case err == nil && seen.Phase == charts.Deployed && seen.Version == rel.Chart.Version && seen.ValuesHash == asHeld:
		return moveRest
	case step != charts.StepUpgrade && step != charts.StepRollback && step != charts.StepWait:
		return moveAll
	case from != "" && from != rel.Chart.Version, charts.OperandsHeld(seen.Values):
		return moveOne
	}
	return moveAll
}

// oneCanMove says whether one node can go first and another is left to follow.
func (w wanted) oneCanMove(b *book, s sight) bool {
	with := 0
	for _, n := range s.cluster.state.Nodes {
		if _, proven := proofOf(n); proven || nodeGPUs(n) > 0 {
			with++
		}
	}
	movable := len(w.movable(b, s))
	return movable > 0 && max(with, movable) > 1
}

// movable are the nodes with GPUs that can go first, those without the control plane before.
func (w wanted) movable(b *book, s sight) []inventory.Machine {
	machines := w.byRole()
	if w.existing() != nil && len(w.machines) == 0 {
		machines = w.foreignNodes(s)
	}
	return slices.DeleteFunc(machines, func(m inventory.Machine) bool {
		n, joined := s.cluster.state.Node(m.Name)
		othersClosed := n.Cordoned && n.Annotations[drainedAnnotation] == ""
		return !joined || !n.Ready || othersClosed || b.out[m.Name] || !s.foreign(m.Name) && len(nvidia.GPUs(s.facts[m.Name])) == 0
	})
}

// first is the node that goes first: one that an earlier run had begun with goes on.
func (w wanted) first(nodes []inventory.Machine, s sight) inventory.Machine {
	for _, begun := range []func(inventory.Machine) bool{
		func(m inventory.Machine) bool {
			n, _ := s.cluster.state.Node(m.Name)
			return n.Annotations[drainedAnnotation] != ""
		},
		func(m inventory.Machine) bool {
			n, _ := s.cluster.state.Node(m.Name)
			_, proven := proofOf(n)
			return !proven
		},
	} {
		if i := slices.IndexFunc(nodes, begun); i >= 0 {
			return nodes[i]
		}
	}
	return nodes[0]
}

// oneFirst orders a move of operator and toolkit: one node, its proof, the others.
func (w wanted) oneFirst(b *book, s sight, do doer) {
	var toolkits []string
	for _, m := range w.machines {
		if from, _ := nvidia.ToolkitMoves(w.nvidia(m), s.facts[m.Name]); from != "" && slices.ContainsFunc(b.actions, is(nvidia.ToolkitID(m.Name))) {
			toolkits = append(toolkits, m.Name)
		}
	}
	if b.move == moveAll && len(toolkits) == 0 || !w.oneCanMove(b, s) {
		return
	}
	first := w.first(w.movable(b, s), s)
	n, _ := s.cluster.state.Node(first.Name)
	_, proven := proofOf(n)
	if b.move != moveOne && proven && n.Annotations[drainedAnnotation] == "" && !slices.Contains(toolkits, first.Name) {
		return // it has gone first
	}
	drain := slices.ContainsFunc(b.actions, is(drainID(first.Name)))
	for _, a := range w.firstMoves(b, first, s, do) {
		if w.existing() != nil && len(w.machines) == 0 {
			a.Machine, a.Title = "", first.Name+": "+a.Title
		}
		at := len(b.actions)
		if a.ID == drainID(first.Name) {
			at = max(0, slices.IndexFunc(b.actions, func(a plan.Action) bool { return a.ID == operatorID || a.ID == nvidia.ToolkitID(first.Name) }))
			drain = true
		}
		b.actions = slices.Insert(b.actions, at, a)
	}
	var before []string
	if drain {
		before = []string{drainID(first.Name)}
	}
	w.follow(b, first, toolkits, before)
}

// is matches an action by its ID.
func is(id string) func(plan.Action) bool {
	return func(a plan.Action) bool { return a.ID == id }
}

// firstMoves are the actions of the node that goes first which are not in the plan yet.
func (w wanted) firstMoves(b *book, m inventory.Machine, s sight, do doer) []plan.Action {
	n, _ := s.cluster.state.Node(m.Name)
	var out []plan.Action
	if !n.Cordoned || n.Annotations[drainedAnnotation] != drainDone {
		out = append(out, plan.Action{
			ID: drainID(m.Name), Machine: m.Name, Title: "let pods with GPUs leave the node", Reason: "it moves first, and proves its GPUs before the others follow",
			Changes: []string{"cordon " + m.Name + ", evict its pods that hold GPUs; the others stay"}, Consent: plan.ConsentDrain, Timeout: 15 * time.Minute,
			Needs: []string{m.Name + "/host-holds"}, Apply: func(ctx context.Context, say plan.Say) error { return emptyToMove(ctx, m.Name, do, say) },
		})
	}
	if b.move != moveAll {
		out = append(out, w.moveOperands(m, s, do))
	}
	out = append(out, w.proof(m, s, "it moves first: the others follow when its GPUs are proven", do), openAction(m, do))
	return slices.DeleteFunc(out, func(a plan.Action) bool { return slices.ContainsFunc(b.actions, is(a.ID)) })
}

// follow lets each action wait for what has to be before it.
func (w wanted) follow(b *book, first inventory.Machine, toolkits, drained []string) {
	proven := []string{smokeID(first.Name), openID(first.Name)}
	for i := range b.actions {
		a := &b.actions[i]
		a.Needs = slices.Clone(a.Needs)
		switch {
		case a.ID == smokeID(first.Name):
			a.Needs = []string{nodeID(first.Name), nvidia.ToolkitID(first.Name), operatorID, operandsID(first.Name)}
		case a.ID == operatorID, a.ID == nvidia.ToolkitID(first.Name):
			a.Needs = append(a.Needs, drained...)
		case a.ID == restID:
			a.Needs = append(a.Needs, proven...)
		case a.ID == operatorReadyID && b.move != moveAll, strings.HasSuffix(a.ID, smokeID("")) && b.move != moveAll:
			a.Needs = append(a.Needs, restID)
		case slices.ContainsFunc(toolkits, func(name string) bool { return a.ID == nvidia.ToolkitID(name) }):
			a.Reason += "; after " + first.Name + ", which proves its GPUs first"
			a.Needs = append(a.Needs, proven...)
		}
	}
}

// emptyToMove takes pods with GPUs and the proof off the node: it has to be proven again.
func emptyToMove(ctx context.Context, node string, do doer, say plan.Say) error {
	client, _, err := do.api.connect(ctx)
	if err != nil {
		return err
	}
	// Before the mark: a run that is cut off between them begins anew.
	if err := client.SetAnnotations(ctx, node, nil, provenAnnotation); err != nil {
		return err
	}
	return emptyGPUs(ctx, node, false, do, say)
}

// moveOperands lets the operator's pods of one node become what they are by now.
func (w wanted) moveOperands(m inventory.Machine, s sight, do doer) plan.Action {
	return plan.Action{
		ID: operandsID(m.Name), Machine: m.Name, Title: "replace the operator's pods of the node", Reason: "it moves first",
		Changes: []string{"the operator's pods on " + m.Name + " are deleted where they are outdated, and come again"},
		Needs:   []string{operatorID, nvidia.ToolkitID(m.Name), drainID(m.Name)}, Timeout: 20 * time.Minute,
		Apply: func(ctx context.Context, say plan.Say) error {
			return w.operandsMoved(ctx, []string{m.Name}, true, s, do, say)
		},
	}
}

// moveOthers ends a move: the operator's pods are replaced on the other nodes, one
// node after the other, by Kubernetes itself.
func (w wanted) moveOthers(wish charts.Release, s sight, do doer) plan.Action {
	return plan.Action{
		ID: restID, Title: "replace the operator's pods of the other nodes", Reason: "they run those of the version before",
		Changes: []string{"value daemonsets.updateStrategy: back to what is wanted; Kubernetes replaces them node after node"},
		Needs:   []string{operatorID}, Timeout: 40 * time.Minute,
		Apply: func(ctx context.Context, say plan.Say) error {
			if err := ensure(wish, do)(ctx, say); err != nil {
				return err
			}
			var nodes []string
			for _, n := range s.cluster.state.Nodes {
				nodes = append(nodes, n.Name)
			}
			return w.operandsMoved(ctx, nodes, false, s, do, say)
		},
	}
}

// operandsMoved waits until the operator's pods of nodes are what its new version
// wants, some time without a break: the operator comes to them one after the other.
func (w wanted) operandsMoved(ctx context.Context, nodes []string, remove bool, s sight, do doer, say plan.Say) error {
	client, releaser, err := do.api.connect(ctx)
	if err != nil {
		return err
	}
	state, err := client.Snapshot(ctx)
	if err != nil {
		return err
	}
	strategy := "RollingUpdate"
	if remove {
		strategy = "OnDelete"
	}
	namespace := w.operatorNamespace(state)
	current := client.OperandsCurrent(kube.Operands{Namespace: namespace, Nodes: nodes, Strategy: strategy, Delete: remove})
	settled := stays(20 * time.Second)
	err = kube.Wait(ctx, 2*time.Second, 15*time.Minute, func(ctx context.Context) (bool, string, error) {
		done, reason, err := current(ctx)
		if err != nil {
			return false, "", err
		}
		return settled(done), reason, nil
	}, say)
	if err != nil || remove {
		return w.diagnosed(ctx, client, "", err)
	}
	return w.diagnosed(ctx, client, "", releaser.WaitOperatorReady(ctx, charts.OperatorReady{
		Namespace: namespace, NFD: len(w.machines) > 0, Nodes: w.gpuNodes(s, state),
	}, charts.Say(say)))
}

// wayBack says how to undo a move of the operator.
func wayBack(seen charts.State, rel charts.Release) []string {
	from := seen.Version
	if seen.LastGood > 0 {
		from = seen.GoodVersion
	}
	if rel.Adopted || from == "" || from == rel.Chart.Version {
		return nil
	}
	for _, name := range charts.Names() {
		if set, err := charts.Load(name); err == nil && set.Operator.Version == from {
			return []string{fmt.Sprintf("way back: set %q in gpuctl.yaml again, and apply", name)}
		}
	}
	return []string{"way back: the set of before in gpuctl.yaml again (GPU Operator " + from + "), and apply"}
}
