package bootstrap

import (
	"context"

	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/charts"
	"github.com/gpuctl/gpuctl/internal/kube"
)

// gates waits until a node offers its GPUs: operator, labels, driver, device plugin
// and allocatable GPUs, each with a limit of its own, before the test that has its
// own. What fails names its gate, and what the cluster has to say of it.
func (w wanted) gates(ctx context.Context, client *kube.Client, node string, offers map[string]int64, do doer, say plan.Say) error {
	_, releaser, err := do.api.connect(ctx)
	if err != nil {
		return err
	}
	o := charts.NodeReady{Node: node, Allocatable: offered(client, node, offers)}
	if w.config.OperatorEnabled() {
		state, err := client.Snapshot(ctx)
		if err != nil {
			return err
		}
		o.Namespace = w.operatorNamespace(state)
	}
	return w.diagnosed(ctx, client, node, releaser.WaitNodeReady(ctx, o, charts.Say(say)))
}

// offered waits for a node's allocatable GPUs and names what the operator says
// meanwhile. An API that is not there now is a reason to wait.
func offered(client *kube.Client, node string, offers map[string]int64) func(context.Context) (bool, string, error) {
	gate := client.NodeGPUs(node, offers)
	return func(ctx context.Context) (bool, string, error) {
		done, reason, err := gate(ctx)
		if done || err != nil {
			return done, reason, err
		}
		if state, err := client.Snapshot(ctx); err == nil && !state.Policy.Ready() {
			reason += "; " + state.Policy.Why()
		}
		return false, reason, nil
	}
}
