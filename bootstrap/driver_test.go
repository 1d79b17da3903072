package bootstrap

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/k3s"
	"github.com/gpuctl/gpuctl/bootstrap/nvidia"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/charts"
	"github.com/gpuctl/gpuctl/internal/config"
	"github.com/gpuctl/gpuctl/internal/diag"
)

// TestMixedCluster: the operator brings driver and toolkit to one machine, the
// other keeps its own and says so from its registration on.
func TestMixedCluster(t *testing.T) {
	w := clusterOf(t, "server-1", "gpu-1", "gpu-2")
	w.config.Spec.Groups = []config.Group{
		{Name: "theirs", Driver: config.Driver{Mode: "operator", Modules: "auto"}}, {Name: "own", Driver: config.Driver{Mode: "auto", Modules: "auto"}},
	}
	w.machines[1].Group, w.machines[2].Group = "theirs", "own"
	s := sightOf(w, 0, 1, 1)
	s.facts["gpu-1"] = withoutDriver(s.facts["gpu-1"])
	b := w.contents(s, pure())
	golden(t, "mixed-drivers", render(b))
	for _, a := range b.actions {
		if strings.HasPrefix(a.ID, "gpu-1/") && (a.ID == "gpu-1/driver" || a.ID == "gpu-1/toolkit") {
			t.Errorf("the host brings what is the operator's: %s", a.ID)
		}
	}
	joined := settledSight(t, w, 0, 1, 1)
	joined.cluster.release = charts.State{Phase: charts.Absent}
	for _, a := range w.contents(joined, pure()).actions {
		if a.ID == operatorID && !slices.Contains(a.Needs, "gpu-2/labels") {
			t.Errorf("the operator does not wait for the labels: %v", a.Needs)
		}
	}
	if want := w.k3s(w.machines[2], s, b.network); !strings.Contains(k3s.Config(want), "nvidia.com/gpu.deploy.driver=false") {
		t.Errorf("a new node does not register with the labels:\n%s", k3s.Config(want))
	}
	for _, m := range w.machines[:2] {
		if labels := w.deployLabels(m, s); labels != nil {
			t.Errorf("%s: %v", m.Name, labels)
		}
	}
	rel, _ := w.operator(s)
	driver, toolkit := rel.Values["driver"].(map[string]any), rel.Values["toolkit"].(map[string]any)
	if driver["enabled"] != true || driver["version"] != "580.173.02" || toolkit["enabled"] != true || driver["kernelModuleType"] != nil {
		t.Errorf("values: %v, %v", driver, toolkit)
	}
	w.config.Spec.Groups[0].Driver.Modules = "open"
	if rel, _ = w.operator(s); rel.Values["driver"].(map[string]any)["kernelModuleType"] != "open" {
		t.Errorf("values: %v", rel.Values["driver"])
	}
}

// TestOneNodeOfAGroupGetsTheDriverFirst: the others wait until it takes work again.
func TestOneNodeOfAGroupGetsTheDriverFirst(t *testing.T) {
	w := clusterOf(t, "server-1", "gpu-1", "gpu-2", "gpu-3", "old-1")
	w.config.Spec.Groups = []config.Group{
		{Name: "gpu", Driver: config.Driver{Mode: "auto", Branch: "595"}}, {Name: "old", Driver: config.Driver{Mode: "auto", Branch: "595"}},
	}
	for i := range 4 {
		w.machines[i].Group = "gpu"
	}
	w.machines[4].Group = "old"
	s := settledSight(t, w, 1, 1, 1, 1, 1)
	drains := func() map[string]plan.Action {
		out := map[string]plan.Action{}
		for _, a := range w.contents(s, pure()).actions {
			if a.ID == drainID(a.Machine) {
				out[a.Machine] = a
			}
		}
		return out
	}
	waits := func(a plan.Action, canary string) bool {
		return slices.Contains(a.Needs, smokeID(canary)) && slices.Contains(a.Needs, openID(canary)) && strings.Contains(a.Reason, "after "+canary)
	}
	got := drains()
	if len(got) != 5 || waits(got["gpu-1"], "gpu-1") || strings.Contains(got["gpu-1"].Reason, "after") || strings.Contains(got["old-1"].Reason, "after") {
		t.Errorf("who is first waits for nobody: %+v", got)
	}
	for _, later := range []string{"gpu-2", "gpu-3", "server-1"} {
		if !waits(got[later], "gpu-1") {
			t.Errorf("%s does not wait: %+v", later, got[later])
		}
	}
	// A run that was cut off goes on with the node that it had begun.
	s.cluster.state.Nodes[2].Cordoned = true
	s.cluster.state.Nodes[2].Annotations = map[string]string{drainedAnnotation: drainDone}
	if got = drains(); !waits(got["gpu-1"], "gpu-2") || !waits(got["gpu-3"], "gpu-2") {
		t.Errorf("the begun one is not first: %+v", got)
	}
}

// TestAMissingPackageIsAFinding, not a failed action: exit code 3.
func TestAMissingPackageIsAFinding(t *testing.T) {
	lacks := &nvidia.NoCandidateError{Finding: diag.Found(nvidia.CodeNoPackage, "gpu-1", "no candidate"), Err: errors.New("exit code 65")}
	report := plan.Report{Outcomes: []plan.Outcome{{Action: plan.Action{ID: "gpu-1/driver", Machine: "gpu-1"}, Status: plan.Failed, Err: lacks}}}
	err := runError(report)
	var blocked *BlockedError
	var failed *plan.ActionError
	if !errors.As(err, &blocked) || len(blocked.Findings) != 1 || blocked.Findings[0].Code != nvidia.CodeNoPackage || errors.As(err, &failed) {
		t.Errorf("%v", err)
	}
	report.Outcomes[0].Err = errors.New("broken")
	if err := runError(report); !errors.As(err, &failed) || errors.As(err, &blocked) && err == nil {
		t.Errorf("%v", err)
	}
}

// TestStandAlonePlugin: without the operator the device plugin's own chart gives
// pods their GPUs, and they are proven all the same.
func TestStandAlonePlugin(t *testing.T) {
	w := clusterOf(t, "server-1", "gpu-1")
	off := false
	w.config.Spec.GPU.Operator.Enabled = &off
	b := w.contents(sightOf(w, 0, 1), pure())
	golden(t, "stand-alone-plugin", render(b))
	if slices.ContainsFunc(b.actions, hasID(operatorID)) || !slices.ContainsFunc(b.actions, hasID(pluginID)) {
		t.Error("the operator is installed though it is off, or the plugin is not")
	}
	for _, a := range b.actions {
		if a.ID == smokeID("gpu-1") && !slices.Contains(a.Needs, pluginID) {
			t.Errorf("the proof does not wait for the plugin: %v", a.Needs)
		}
	}
	s := settledSight(t, w, 0, 1)
	rel, ok := w.plugin(s)
	if !ok {
		t.Fatal("the set knows no plugin")
	}
	hash, err := charts.HashValues(rel.Values)
	if err != nil {
		t.Fatal(err)
	}
	s.cluster.release = charts.State{Phase: charts.Deployed, Revision: 1, Version: rel.Chart.Version, ValuesHash: hash}
	if b = w.contents(s, pure()); len(b.actions) > 0 {
		t.Errorf("as wanted:\n%s", render(b))
	}
	w.set.Plugin.Chart = ""
	if b = w.contents(sightOf(w, 0, 1), pure()); slices.ContainsFunc(b.actions, hasID(pluginID)) || slices.ContainsFunc(b.actions, hasID(smokeID("gpu-1"))) {
		t.Error("a set without a plugin installs one")
	}
}
