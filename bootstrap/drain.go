package bootstrap

import (
	"context"
	"slices"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/k3s"
	"github.com/gpuctl/gpuctl/bootstrap/nvidia"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/internal/inventory"
	"github.com/gpuctl/gpuctl/internal/kube"
)

// drainedAnnotation says that gpuctl closed a node for a change of its machine,
// and how far it came; a node that somebody else closed stays closed.
const (
	drainedAnnotation = "gpuctl.dev/drained"
	drainBegan        = "began"
	drainDone         = "done"
)

func drainID(machine string) string { return machine + "/drain" }
func openID(machine string) string  { return machine + "/uncordon" }

// driverWay are the IDs of a machine's pending actions after which its driver
// serves its GPUs. What k3s and proofs see before is of no use.
func driverWay(actions []plan.Action, machine string) []string {
	var ids []string
	for _, a := range actions {
		if a.ID == nvidia.DriverID(machine) || a.ID == nvidia.RebootID(machine) || a.ID == nvidia.FabricID(machine) {
			ids = append(ids, a.ID)
		}
	}
	return ids
}

// needing adds needs to actions.
func needing(actions []plan.Action, needs []string) []plan.Action {
	out := slices.Clone(actions)
	for i := range out {
		out[i].Needs = append(slices.Clone(out[i].Needs), needs...)
	}
	return out
}

// drain empties a node whose machine is to get another driver or to be
// rebooted, before that happens: actions are the machine's, in order.
func (w wanted) drain(m inventory.Machine, s sight, actions []plan.Action, do doer) []plan.Action {
	node, joined := s.cluster.state.Node(m.Name)
	disturbs := func(a plan.Action) bool {
		return a.ID == nvidia.DriverID(m.Name) || a.ID == nvidia.RebootID(m.Name) || w.changesRelease(m, s, a)
	}
	first := slices.IndexFunc(actions, disturbs)
	if !joined || first < 0 || (node.Cordoned && node.Annotations[drainedAnnotation] == drainDone) {
		return actions
	}
	others := node.Cordoned && node.Annotations[drainedAnnotation] == ""
	a := plan.Action{
		ID: drainID(m.Name), Machine: m.Name, Title: "drain the node", Reason: "its machine changes: " + actions[first].Title,
		Changes: []string{"cordon " + m.Name + ", evict its pods, its GPUs have to be proven again"},
		Needs:   []string{m.Name + "/host-holds"}, Consent: plan.ConsentDrain, Timeout: 15 * time.Minute,
		Apply: func(ctx context.Context, say plan.Say) error { return drainNode(ctx, m.Name, others, do, say) },
	}
	actions = slices.Clone(actions)
	for i := range actions {
		if disturbs(actions[i]) {
			actions[i].Needs = append(slices.Clone(actions[i].Needs), a.ID)
		}
	}
	return slices.Insert(actions, first, a)
}

func drainNode(ctx context.Context, name string, others bool, do doer, say plan.Say) error {
	client, _, err := do.api.connect(ctx)
	if err != nil {
		return err
	}
	mark := func(how string) error {
		if others {
			return client.SetAnnotations(ctx, name, nil, provenAnnotation)
		}
		return client.SetAnnotations(ctx, name, map[string]string{drainedAnnotation: how}, provenAnnotation)
	}
	if err := mark(drainBegan); err != nil {
		return err
	}
	if err := client.Drain(ctx, name, kube.DrainOptions{Limit: 10 * time.Minute}, say); err != nil {
		return err
	}
	return mark(drainDone)
}

// open lets work come to a node again that was drained, once its GPUs are proven.
func (w wanted) open(m inventory.Machine, s sight, pending []plan.Action, do doer) []plan.Action {
	node, joined := s.cluster.state.Node(m.Name)
	coming := slices.ContainsFunc(pending, func(a plan.Action) bool { return a.ID == drainID(m.Name) })
	mine := node.Annotations[drainedAnnotation] != ""
	if !joined || (!mine && (!coming || node.Cordoned)) {
		return nil
	}
	return []plan.Action{openAction(m, do)}
}

func openAction(m inventory.Machine, do doer) plan.Action {
	return plan.Action{
		ID: openID(m.Name), Machine: m.Name, Title: "let work come to the node again", Reason: "it is drained for a change of its machine",
		Changes: []string{"uncordon " + m.Name},
		Needs: []string{
			drainID(m.Name), nvidia.DriverID(m.Name), nvidia.RebootID(m.Name), nvidia.ToolkitID(m.Name), k3s.ActionID(m.Name), nodeID(m.Name),
			operandsID(m.Name), smokeID(m.Name), sharingID(m.Name), sharingProofID(m.Name),
		},
		Apply: func(ctx context.Context, _ plan.Say) error {
			client, _, err := do.api.connect(ctx)
			if err != nil {
				return err
			}
			if err := client.Cordon(ctx, m.Name, false); err != nil {
				return err
			}
			return client.SetAnnotations(ctx, m.Name, nil, drainedAnnotation)
		},
	}
}
