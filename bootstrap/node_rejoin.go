package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gpuctl/gpuctl/bootstrap/k3s"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/internal/inventory"
)

// unregistered says why a running agent has to start again: the cluster lacks
// its node, and a kubelet registers only when it starts (seen on k3s v1.36.3).
// A node that registers itself is there before systemd calls the agent active.
func unregistered(m inventory.Machine, s sight) string {
	unit := s.facts[m.Name].K3s.Value.Units["k3s-agent"]
	if m.Role != inventory.Agent || unit.Active != "active" || !s.cluster.there() {
		return ""
	}
	if _, joined := s.cluster.state.Node(m.Name); joined {
		return ""
	}
	return "k3s-agent runs and the cluster has no node " + m.Name + ": it was deleted"
}

// clearBefore deletes what the operator ran on a node of which the cluster knows
// nothing any more, before its agent starts again: pods that are taken over by
// the new node do not label it anew, and a device plugin on its way out refuses
// pods (both seen in the lab). Pods of users stay: where the node is back soon
// enough they run on.
func (w wanted) clearBefore(actions []plan.Action, m inventory.Machine, s sight, do doer) {
	i := slices.IndexFunc(actions, func(a plan.Action) bool { return a.ID == k3s.ActionID(m.Name) })
	if i < 0 {
		return
	}
	namespace, start := w.operatorNamespace(s.cluster.state), actions[i].Apply
	actions[i].Changes = append(actions[i].Changes, "pods of namespace "+namespace+" that ran on the node are made anew")
	actions[i].Apply = func(ctx context.Context, say plan.Say) error {
		client, _, err := do.api.connect(ctx)
		if err != nil {
			return err
		}
		if err := client.DeletePodsOn(ctx, m.Name, namespace); err != nil {
			return err
		}
		return start(ctx, say)
	}
}

// RejectedError says that the server refused a machine's node password, and
// which of the two causes it is.
type RejectedError struct {
	Node, Reason string
	// Leftover says that gpuctl node replace mends it.
	Leftover bool
	Err      error
}

func (e *RejectedError) Error() string { return fmt.Sprintf("%v; %s", e.Err, e.Reason) }

// Unwrap returns the failure of the start.
func (e *RejectedError) Unwrap() error { return e.Err }

// tellRejection makes the failure of a join say why the password was refused.
func tellRejection(actions []plan.Action, m inventory.Machine, address string, do doer) {
	i := slices.IndexFunc(actions, func(a plan.Action) bool { return a.ID == k3s.ActionID(m.Name) })
	if m.Role != inventory.Agent || i < 0 {
		return
	}
	join := actions[i].Apply
	actions[i].Apply = func(ctx context.Context, say plan.Say) error {
		err := join(ctx, say)
		var start *k3s.StartError
		if !errors.As(err, &start) || start.Code != "node-password-rejected" {
			return err
		}
		client, _, noAPI := do.api.connect(ctx)
		if noAPI != nil {
			return err
		}
		state, noAPI := client.Snapshot(ctx)
		if noAPI != nil || state.NoAPI != "" {
			return err
		}
		rejected := &RejectedError{Node: m.Name, Err: err}
		rejected.Reason, rejected.Leftover = state.WhyRejected(m.Name, address)
		return rejected
	}
}
