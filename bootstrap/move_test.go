package bootstrap

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/bootstrap/nvidia"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/charts"
	"github.com/gpuctl/gpuctl/internal/kube"
	"github.com/gpuctl/gpuctl/internal/smoke"
)

// withToolkit is a machine whose toolkit came by gpuctl.
func withToolkit(f host.Facts, version string) host.Facts {
	f.Toolkit.Value.Version = version
	f.Packages.Value.Held = append(slices.Clone(f.Packages.Value.Held), nvidia.Packages()...)
	files := maps.Clone(f.Files.Value)
	files[nvidia.PathSource] = host.File{Mode: "644", Kind: "file"}
	f.Files = host.Known(files)
	return f
}

// older is a settled cluster whose operator and toolkits are those of an earlier set.
func older(t *testing.T, w wanted, gpus ...int) sight {
	t.Helper()
	s := settledSight(t, w, gpus...)
	s.cluster.release.Version = "v26.3.3"
	for i, m := range w.machines {
		if gpus[i] > 0 {
			s.facts[m.Name] = withToolkit(s.facts[m.Name], "1.19.1")
		}
	}
	return s
}

func actionsOf(b book) map[string]plan.Action {
	out := map[string]plan.Action{}
	for _, a := range b.actions {
		out[a.ID] = a
	}
	return out
}

func needs(a plan.Action, ids ...string) bool {
	return !slices.ContainsFunc(ids, func(id string) bool { return !slices.Contains(a.Needs, id) })
}

// TestOneNodeMovesToAnotherSetFirst: emptied, moved, proven; the others after it.
func TestOneNodeMovesToAnotherSetFirst(t *testing.T) {
	w := clusterOf(t, "server-1", "gpu-1", "gpu-2")
	b := w.contents(older(t, w, 1, 2, 2), pure())
	golden(t, "move", render(b))
	got := actionsOf(b)
	if !needs(got[operatorID], drainID("gpu-1")) || !needs(got[nvidia.ToolkitID("gpu-1")], drainID("gpu-1")) ||
		!needs(got[operandsID("gpu-1")], operatorID, nvidia.ToolkitID("gpu-1")) || !needs(got[smokeID("gpu-1")], operandsID("gpu-1"), nvidia.ToolkitID("gpu-1")) {
		t.Errorf("gpu-1 does not go first:\n%s", render(b))
	}
	for _, later := range []string{restID, nvidia.ToolkitID("gpu-2"), nvidia.ToolkitID("server-1")} {
		if !needs(got[later], smokeID("gpu-1"), openID("gpu-1")) {
			t.Errorf("%s does not wait for the proof: %v", later, got[later].Needs)
		}
	}
	for _, id := range []string{drainID("gpu-2"), smokeID("gpu-2"), operandsID("gpu-2")} {
		if _, there := got[id]; there {
			t.Errorf("%s: one node is enough", id)
		}
	}
	waits(t, b)
}

// waits fails the test where the needs of a plan go round in a circle.
func waits(t *testing.T, b book) {
	t.Helper()
	all, seen := actionsOf(b), map[string]int{}
	var walk func(id string) bool
	walk = func(id string) bool {
		a, there := all[id]
		if !there || seen[id] == 2 {
			return true
		}
		if seen[id] == 1 {
			return false
		}
		seen[id] = 1
		for _, n := range append(slices.Clone(a.Needs), a.After...) {
			if !walk(n) {
				t.Errorf("%s waits for %s, which waits for it", id, n)
				return false
			}
		}
		seen[id] = 2
		return true
	}
	for id := range all {
		walk(id)
	}
}

// TestAMoveGoesOnWhereItWasCutOff: what is left is read from release, nodes and machines.
func TestAMoveGoesOnWhereItWasCutOff(t *testing.T) {
	w := clusterOf(t, "server-1", "gpu-1", "gpu-2")
	rel, _ := w.operator(settledSight(t, w, 0, 2, 2))
	holding := charts.HoldOperands(rel.Values)
	hash, err := charts.HashValues(holding)
	if err != nil {
		t.Fatal(err)
	}
	moved := func(s *sight) {
		s.cluster.release.Version, s.cluster.release.Values, s.cluster.release.ValuesHash = rel.Chart.Version, holding, hash
		s.facts["gpu-1"] = withToolkit(s.facts["gpu-1"], "1.20.0")
	}
	drained := func(n *kube.Node) {
		n.Cordoned = true
		n.Annotations = map[string]string{drainedAnnotation: drainDone}
	}
	for name, c := range map[string]struct {
		change func(*sight)
		want   string
	}{
		"the node is emptied": {func(s *sight) { drained(&s.cluster.state.Nodes[2]) },
			"gpu-1/toolkit gpu-2/toolkit gpu-2/uncordon cluster/gpu-operator cluster/gpu-operator-rest gpu-2/smoke gpu-2/operands cluster/gpu-ready"},
		"the release has moved": {func(s *sight) { moved(s); drained(&s.cluster.state.Nodes[1]) },
			"gpu-2/toolkit gpu-1/uncordon cluster/gpu-operator-rest gpu-1/smoke gpu-1/operands cluster/gpu-ready"},
		"the first is proven": {func(s *sight) { moved(s) }, "gpu-2/toolkit cluster/gpu-operator-rest"},
		"the user changed the values": {func(s *sight) {
			moved(s)
			drained(&s.cluster.state.Nodes[1])
			s.cluster.release.ValuesHash = "other"
		}, "gpu-2/toolkit gpu-1/uncordon cluster/gpu-operator cluster/gpu-operator-rest gpu-1/smoke gpu-1/operands cluster/gpu-ready"},
		"the move failed": {func(s *sight) {
			s.cluster.release.Phase, s.cluster.release.LastGood, s.cluster.release.GoodVersion = charts.Failed, 1, s.cluster.release.Version
			s.cluster.release.Version = rel.Chart.Version
			drained(&s.cluster.state.Nodes[1])
		}, "gpu-1/toolkit gpu-2/toolkit gpu-1/uncordon cluster/gpu-operator cluster/gpu-operator-rest gpu-1/smoke gpu-1/operands cluster/gpu-ready"},
	} {
		t.Run(name, func(t *testing.T) {
			s := older(t, w, 0, 2, 2)
			c.change(&s)
			b := w.contents(s, pure())
			have := strings.Fields(idsOf(b.actions))
			want := strings.Fields(c.want)
			slices.Sort(have)
			slices.Sort(want)
			if !slices.Equal(have, want) {
				t.Errorf("pending are %v, want %v\n%s", have, want, render(b))
			}
			waits(t, b)
		})
	}
}

// TestWhereNothingGoesFirst: one node alone, somebody else's release, values only.
func TestWhereNothingGoesFirst(t *testing.T) {
	alone := clusterOf(t, "server-1", "gpu-1")
	if got := idsOf(alone.contents(older(t, alone, 0, 2), pure()).actions); got != "gpu-1/toolkit cluster/gpu-operator" {
		t.Errorf("one node with GPUs: %s", got)
	}
	w := clusterOf(t, "server-1", "gpu-1", "gpu-2")
	s := settledSight(t, w, 0, 2, 2)
	s.cluster.release.ValuesHash = "other"
	if got := idsOf(w.contents(s, pure()).actions); got != operatorID {
		t.Errorf("values only: %s", got)
	}
	s = older(t, w, 0, 2, 2)
	s.cluster.release.Version = w.set.Operator.Version
	b := w.contents(s, pure())
	got := actionsOf(b)
	if _, there := got[operandsID("gpu-1")]; there || !needs(got[nvidia.ToolkitID("gpu-2")], smokeID("gpu-1")) || len(b.actions) != 5 {
		t.Errorf("the toolkit only:\n%s", render(b))
	}
}

// TestTheWayBackIsTheOldSet: a newer operator and a newer toolkit of gpuctl's own go back.
func TestTheWayBackIsTheOldSet(t *testing.T) {
	w := clusterOf(t, "server-1", "gpu-1", "gpu-2")
	old, err := charts.Load("26.3")
	if err != nil {
		t.Fatal(err)
	}
	w.set = old
	s := settledSight(t, w, 0, 1, 1)
	s.cluster.release.Version = "v26.7.0"
	for _, name := range []string{"gpu-1", "gpu-2"} {
		s.facts[name] = withToolkit(s.facts[name], "1.20.0")
	}
	b := w.contents(s, pure())
	got := actionsOf(b)
	if a := got[nvidia.ToolkitID("gpu-1")]; a.Reason != "version is 1.20.0, newer than wanted" {
		t.Errorf("the toolkit stays: %+v", a)
	}
	if a := got[operatorID]; a.Title != "move GPU Operator v26.7.0 -> "+old.Operator.Version || !slices.Contains(a.Changes, `way back: set "26.7" in gpuctl.yaml again, and apply`) {
		t.Errorf("the operator: %+v", a)
	}
	// A newer toolkit that somebody else put there stays.
	f := s.facts["gpu-2"]
	f.Packages.Value.Held = nil
	s.facts["gpu-2"] = f
	b = w.contents(s, pure())
	if _, there := actionsOf(b)[nvidia.ToolkitID("gpu-2")]; there || !strings.Contains(codesOf(b.findings), "toolkit-newer") {
		t.Errorf("somebody else's toolkit:\n%s", render(b))
	}
}

// TestNodesOfAForeignClusterMoveOneFirstToo: gpuctl's own release on a cluster that it did not make.
func TestNodesOfAForeignClusterMoveOneFirstToo(t *testing.T) {
	w := existingOf(t, byKubeconfig)
	s := existingSight("v1.36.1", 2)
	proof := func(uuids ...string) map[string]string {
		text, err := smoke.Proof{Time: time.Now(), UUIDs: uuids, Image: "image"}.Annotation()
		if err != nil {
			t.Fatal(err)
		}
		return map[string]string{provenAnnotation: text}
	}
	s.cluster.state.Nodes[1].Annotations = proof("GPU-a", "GPU-b")
	s.cluster.state.Nodes = append(s.cluster.state.Nodes, kube.Node{Name: "gpu-2", Ready: true, Capacity: map[string]int64{gpuResource: 1},
		Annotations: proof("GPU-c")})
	rel, _ := w.operator(s)
	s.cluster.release = charts.State{Phase: charts.Deployed, Owner: "me", Version: "v26.3.3", Values: rel.Values, ValuesHash: "other"}
	s.cluster.state.Policy = kube.Policy{Exists: true, State: "ready", Reason: "Reconciled"}
	b := w.contents(s, pure())
	got := actionsOf(b)
	if !needs(got[operatorID], drainID("gpu-1")) || !needs(got[restID], smokeID("gpu-1")) || !needs(got[operatorReadyID], restID) || len(b.actions) != 7 {
		t.Errorf("%s", render(b))
	}
	for _, a := range b.actions {
		if a.Machine != "" {
			t.Errorf("%s: there is no machine %s that could be looked at", a.ID, a.Machine)
		}
	}
	waits(t, b)
	// A release that somebody else made moves as asked, at once.
	s.cluster.release.Owner = ""
	asked := existingOf(t, byKubeconfig+"  gpu: {operator: {version: v26.7.0}}\n")
	if b = asked.contents(s, pure()); idsOf(b.actions) != operatorID+" "+operatorReadyID {
		t.Errorf("somebody else's:\n%s", render(b))
	}
}
