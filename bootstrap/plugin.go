package bootstrap

import (
	"context"
	"fmt"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/k3s"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/charts"
)

// pluginID is the action after which the stand-alone device plugin is installed.
const pluginID = "cluster/device-plugin"

// plugin is the release of the stand-alone device plugin; ok is false where the
// GPU Operator brings one, or the set knows none.
func (w wanted) plugin(s sight) (rel charts.Release, ok bool) {
	if w.config.OperatorEnabled() {
		return charts.Release{}, false
	}
	want := w.withSharing(charts.Want{RuntimePath: w.config.Spec.GPU.RuntimePath, Taints: w.taintKeys()}, s)
	if rel, ok = w.set.PluginRelease(want); !ok {
		return charts.Release{}, false
	}
	if url := w.config.Spec.Sources.Charts.URL; url != "" {
		rel.Chart.Repository = url
	}
	rel.Chart = w.bundled(rel.Chart)
	rel.Owner = w.owner
	return rel, true
}

// gpuRelease is the release that gives pods their GPUs; ok is false where none does.
func (w wanted) gpuRelease(s sight) (charts.Release, bool) {
	if w.config.OperatorEnabled() {
		rel, _ := w.operator(s)
		return rel, true
	}
	return w.plugin(s)
}

// installPlugin brings the stand-alone device plugin to the wanted state. That it
// serves shows on each node, whose proof waits for its GPUs.
func (w wanted) installPlugin(s sight, do doer) []plan.Action {
	rel, ok := w.plugin(s)
	if !ok {
		return nil
	}
	reason := "there is no cluster yet"
	if s.cluster.there() {
		hash, err := charts.HashValues(rel.Values)
		if err != nil {
			reason = err.Error()
		} else {
			var step charts.Step
			if step, reason = charts.Decide(s.cluster.release, rel, hash, s.cluster.at); step == charts.StepNone {
				return nil
			}
		}
	}
	changes := []string{fmt.Sprintf("chart %s %s from %s", rel.Chart.Name, rel.Chart.Version, rel.Chart.Repository)}
	if rel.Chart.SHA256 == "" {
		changes = append(changes, "the archive is checked against the repository's index: the set pins no checksum for it")
	}
	return []plan.Action{{
		ID: pluginID, Title: "install NVIDIA device plugin " + rel.Chart.Version, Reason: reason, Changes: changes,
		Needs: []string{nodeID(w.lead(s).Name), k3s.ActionID(w.lead(s).Name)}, Timeout: 20 * time.Minute,
		Apply: func(ctx context.Context, say plan.Say) error {
			_, releaser, err := do.api.connect(ctx)
			if err != nil {
				return err
			}
			_, err = releaser.Ensure(ctx, rel, charts.Say(say))
			return err
		},
	}}
}
