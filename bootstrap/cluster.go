package bootstrap

import (
	"context"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/k3s"
	"github.com/gpuctl/gpuctl/bootstrap/nvidia"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/charts"
	"github.com/gpuctl/gpuctl/internal/inventory"
	"github.com/gpuctl/gpuctl/internal/kube"
)

// IDs of the actions of the cluster.
const (
	operatorID      = "cluster/gpu-operator"
	operatorReadyID = "cluster/gpu-ready"
)

func nodeID(machine string) string { return machine + "/node" }

// nodeReady waits for a machine's node: that k3s runs does not mean that pods can.
func (w wanted) nodeReady(m inventory.Machine, s sight, do doer) []plan.Action {
	reason := "it has not joined yet"
	if n, ok := s.cluster.state.Node(m.Name); ok {
		reason = w.awaitsRelease(n)
		if n.Ready && reason == "" {
			return nil
		}
		if !n.Ready {
			reason = "it is not Ready: " + n.Reason
		}
	}
	return []plan.Action{{
		ID: nodeID(m.Name), Machine: m.Name, Title: "see the node Ready", Reason: reason,
		Needs: []string{k3s.ActionID(m.Name)}, Timeout: 6 * time.Minute,
		Apply: func(ctx context.Context, say plan.Say) error {
			client, _, err := do.api.connect(ctx)
			if err != nil {
				return err
			}
			return w.diagnosed(ctx, client, m.Name, kube.Wait(ctx, time.Second, 5*time.Minute, w.comesUp(client, m.Name), say))
		},
	}}
}

// comesUp is the condition that a node is Ready, and at the new release where it is upgraded.
func (w wanted) comesUp(client *kube.Client, name string) kube.Condition {
	if w.upgrade == nil {
		return client.NodeReady(name)
	}
	return client.NodeAt(name, w.kubernetes())
}

// operatorReady is the gate over all GPU nodes, after their proofs: with a card that
// failed its proof the operator's own validator fails too, and waiting for that would
// only cost. A node that joins or reboots makes an operator that was ready start
// again, which it notices late.
func (w wanted) operatorReady(s sight, do doer, proofs, returning []string) []plan.Action {
	if s.cluster.there() && s.cluster.state.Policy.Ready() && len(returning)+len(proofs) == 0 {
		return nil
	}
	reason := "there is no cluster yet"
	switch {
	case s.cluster.there() && s.cluster.state.Policy.Ready():
		reason = "machines of its nodes change"
	case s.cluster.there():
		reason = s.cluster.state.Policy.Why()
	}
	return []plan.Action{{
		ID: operatorReadyID, Title: "see the GPU Operator ready", Reason: reason,
		Needs: append([]string{operatorID}, proofs...), After: returning, Timeout: 20 * time.Minute,
		// The operator notices late what changed: it was ready, and the gate was passed all the same.
		Ahead: s.cluster.there() && s.cluster.state.Policy.Ready(),
		Apply: func(ctx context.Context, say plan.Say) error {
			client, releaser, err := do.api.connect(ctx)
			if err != nil {
				return err
			}
			state, err := client.Snapshot(ctx)
			if err != nil {
				return err
			}
			return w.diagnosed(ctx, client, "", releaser.WaitOperatorReady(ctx, charts.OperatorReady{
				Namespace: w.operatorNamespace(state), NFD: true, Nodes: w.gpuNodes(s, state),
			}, charts.Say(say)))
		},
	}}
}

// gpuNodes are the nodes that have joined and have GPUs.
func (w wanted) gpuNodes(s sight, state kube.State) []string {
	var names []string
	for _, m := range w.machines {
		if n, joined := state.Node(m.Name); joined && n.Ready && len(nvidia.GPUs(s.facts[m.Name])) > 0 {
			names = append(names, m.Name)
		}
	}
	return names
}
