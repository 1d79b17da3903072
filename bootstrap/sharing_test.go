package bootstrap

import (
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/charts"
	"github.com/gpuctl/gpuctl/internal/config"
	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/kube"
	"github.com/gpuctl/gpuctl/internal/smoke"
)

// sharedBy puts the agents of a cluster into a group with this sharing, as YAML.
func sharedBy(t *testing.T, w wanted, text string) wanted {
	t.Helper()
	c, err := config.Parse([]byte("apiVersion: gpuctl.dev/v1alpha1\nkind: Cluster\nmetadata: {name: test}\nspec:\n  groups: [{name: g, sharing: "+
		text+"}]\n  machines: [{host: 203.0.113.1, group: g}]\n"), "gpuctl.yaml")
	if err != nil {
		t.Fatal(err)
	}
	w.config.Spec.Groups = c.Spec.Groups
	for i := range w.machines {
		if i > 0 {
			w.machines[i].Group = "g"
		}
	}
	return w
}

func TestPlanOfSharing(t *testing.T) {
	var out strings.Builder
	for _, text := range []string{"{timeSlicing: 4}", "{timeSlicing: {replicas: 100, renameByDefault: true, failRequestsGreaterThanOne: true}}", "{mps: 10}"} {
		w := sharedBy(t, clusterOf(t, "server-1", "gpu-1"), text)
		s := settledSight(t, w, 0, 2)
		s.cluster.state.Nodes[1].Capacity = map[string]int64{"nvidia.com/gpu": 2}
		s.cluster.state.Pods = []kube.Pod{{Namespace: "team", Name: "train-0", Node: "gpu-1", GPUs: map[string]int64{"nvidia.com/gpu": 1}}}
		out.WriteString("# " + text + "\n" + render(w.contents(s, pure())) + "\n")
	}
	w := sharedBy(t, clusterOf(t, "server-1", "gpu-1"), "{}")
	s := settledSight(t, w, 0, 2)
	asNode(&s.cluster.state.Nodes[1], 8, "gpuctl-time-slicing-4")
	out.WriteString("# {} on a node that is shared\n" + render(w.contents(s, pure())))
	golden(t, "sharing", out.String())
}

// asNode makes a node look as a shared one does.
func asNode(n *kube.Node, units int64, key string) {
	n.Labels = map[string]string{"nvidia.com/device-plugin.config": key, "nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.sharing-strategy": "time-slicing"}
	n.Capacity = map[string]int64{"nvidia.com/gpu": units}
	n.Allocatable = map[string]int64{"nvidia.com/gpu": units}
	if n.Annotations == nil {
		n.Annotations = map[string]string{}
	}
	n.Annotations[sharedAnnotation] = key
}

func TestWhatOfSharingIsPending(t *testing.T) {
	const key = "gpuctl-time-slicing-4"
	for _, tc := range []struct {
		name  string
		drift func(*sight)
		want  string
	}{
		{"nothing, once it is as wanted", func(*sight) {}, ""},
		{"a GPU fell ill", func(s *sight) { s.cluster.state.Nodes[1].Allocatable["nvidia.com/gpu"] = 4 }, ""},
		{"a GPU is lost", func(s *sight) {
			f := s.facts["gpu-1"]
			f.SMI.Value.GPUs = f.SMI.Value.GPUs[:1]
			s.facts["gpu-1"] = f
			s.cluster.state.Nodes[1].Capacity["nvidia.com/gpu"] = 4
		}, ""},
		{"never proven", func(s *sight) { delete(s.cluster.state.Nodes[1].Annotations, sharedAnnotation) }, "gpu-1/sharing-proof cluster/gpu-ready"},
		{"another number", func(s *sight) { asNode(&s.cluster.state.Nodes[1], 4, "gpuctl-time-slicing-2") }, "gpu-1/sharing gpu-1/sharing-proof cluster/gpu-ready"},
		{"the plugin does not follow", func(s *sight) { s.cluster.state.Nodes[1].Capacity["nvidia.com/gpu"] = 2 }, "gpu-1/sharing gpu-1/sharing-proof cluster/gpu-ready"},
		{"unproven GPUs", func(s *sight) { delete(s.cluster.state.Nodes[1].Annotations, provenAnnotation) }, "gpu-1/smoke cluster/gpu-ready"},
		{"somebody else's operator", func(s *sight) {
			s.cluster.release = charts.State{Phase: charts.Absent, Foreign: []charts.Foreign{{Name: "other"}}}
			asNode(&s.cluster.state.Nodes[1], 2, "")
		}, ""},
	} {
		w := sharedBy(t, clusterOf(t, "server-1", "gpu-1"), "{timeSlicing: 4}")
		s := settledSight(t, w, 0, 2)
		asNode(&s.cluster.state.Nodes[1], 8, key)
		tc.drift(&s)
		var ids []string
		for _, a := range w.contents(s, pure()).actions {
			ids = append(ids, a.ID)
		}
		if got := strings.Join(ids, " "); got != tc.want {
			t.Errorf("%s: pending %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestALabelOfOthersStaysWhereNothingIsShared(t *testing.T) {
	w := clusterOf(t, "server-1", "gpu-1")
	s := settledSight(t, w, 0, 2)
	s.cluster.state.Nodes[1].Labels = map[string]string{"nvidia.com/device-plugin.config": "team-a"}
	if b := w.contents(s, pure()); len(b.actions) > 0 {
		t.Errorf("pending:\n%s", render(b))
	}
}

func TestRefusedSharingBlocksTheMachine(t *testing.T) {
	w := sharedBy(t, clusterOf(t, "server-1", "gpu-1"), "{mps: 20}")
	s := sightOf(w, 0, 2)
	for i := range s.facts["gpu-1"].SMI.Value.GPUs {
		s.facts["gpu-1"].SMI.Value.GPUs[i].Compute = "7.0"
	}
	b := w.contents(s, pure())
	if !b.out["gpu-1"] || !diag.AnyBlocks(b.findings) || len(ofScope(b.actions, "gpu-1")) > 0 {
		t.Errorf("20 MPS clients on cards before Turing are planned:\n%s", render(b))
	}
}

func TestSmokeKnowsHowANodeIsShared(t *testing.T) {
	w := clusterOf(t, "gpu-1")
	facts := fresh(1, 2)
	state := kube.State{Nodes: []kube.Node{{Name: "gpu-1"}}, Pods: []kube.Pod{{Node: "gpu-1", GPUs: map[string]int64{"nvidia.com/gpu": 3}}}}
	asNode(&state.Nodes[0], 8, "gpuctl-time-slicing-4")
	got := smokeNode(w.machines[0].Name, facts, state)
	if got.Units != 4 || got.Allocatable != 8 || got.Requested != 3 || got.Resource != "nvidia.com/gpu" {
		t.Errorf("%+v", got)
	}
	if status, finding := smoke.Count(got); status != smoke.Passed {
		t.Errorf("8 shares of 2 GPUs are counted wrong: %+v", finding)
	}
}

// cutNode makes a node look as one whose two GPUs are cut into slices of one profile.
func cutNode(n *kube.Node, config, product string, resources map[string]int64) {
	n.Labels = map[string]string{"nvidia.com/mig.config": config, "nvidia.com/mig.config.state": "success", "nvidia.com/mig.strategy": "single",
		"nvidia.com/gpu.product": product, "nvidia.com/gpu.count": "14"}
	n.Capacity, n.Allocatable = resources, resources
	n.Annotations[migAnnotation] = config
}

func TestPlanOfMIG(t *testing.T) {
	var out strings.Builder
	show := func(title string, w wanted, s sight) {
		out.WriteString("# " + title + "\n" + render(w.contents(s, pure())) + "\n")
	}
	for _, text := range []string{"{mig: 1g.10gb}", "{mig: balanced}", "{mig: {slices: {1g.10gb: 3, 4g.40gb: 1}}}"} {
		w := sharedBy(t, clusterOf(t, "server-1", "gpu-1"), text)
		s := settledSight(t, w, 0, 2)
		s.cluster.state.Nodes[1].Capacity = map[string]int64{"nvidia.com/gpu": 2}
		show(text+" on a node that takes work", w, s)
	}
	w := sharedBy(t, clusterOf(t, "server-1", "gpu-1"), "{mig: 1g.10gb}")
	s := settledSight(t, w, 0, 2)
	f := s.facts["gpu-1"]
	for i := range f.SMI.Value.GPUs {
		f.SMI.Value.GPUs[i].Compute, f.SMI.Value.GPUs[i].Name = "8.0", "NVIDIA A100 80GB PCIe"
		f.PCI.Value[i].Device = "20b5"
	}
	show("a mode that changes only by a reset", w, s)
	w = sharedBy(t, clusterOf(t, "server-1", "gpu-1"), "{}")
	s = settledSight(t, w, 0, 2)
	cutNode(&s.cluster.state.Nodes[1], "all-1g.10gb", "NVIDIA-H100-PCIe-MIG-1g.10gb", map[string]int64{"nvidia.com/gpu": 14})
	show("whole again", w, s)
	golden(t, "mig", out.String())
}

func TestWhatOfSlicesIsPending(t *testing.T) {
	w := sharedBy(t, clusterOf(t, "server-1", "gpu-1"), "{mig: 1g.10gb}")
	settledMIG := func() sight {
		s := settledSight(t, w, 0, 2)
		cutNode(&s.cluster.state.Nodes[1], "all-1g.10gb", "NVIDIA-H100-PCIe-MIG-1g.10gb", map[string]int64{"nvidia.com/gpu": 14})
		s.cluster.state.Nodes[1].Annotations[sharedAnnotation] = "gpuctl-mig-single-1g.10gb"
		return s
	}
	const all = "gpu-1/uncordon gpu-1/drain gpu-1/sharing gpu-1/sharing-proof cluster/gpu-ready"
	for _, tc := range []struct {
		name  string
		drift func(*sight)
		want  string
	}{
		{"nothing, once it is as wanted", func(*sight) {}, ""},
		{"never proven", func(s *sight) { delete(s.cluster.state.Nodes[1].Annotations, sharedAnnotation) }, "gpu-1/sharing-proof cluster/gpu-ready"},
		{"another layout", func(s *sight) { s.cluster.state.Nodes[1].Labels["nvidia.com/mig.config"] = "all-2g.20gb" }, all},
		// NVIDIA/gpu-operator#603: success with no devices is not done.
		{"success and no slices", func(s *sight) { s.cluster.state.Nodes[1].Capacity = map[string]int64{"nvidia.com/gpu": 0} }, all},
		{"the MIG manager failed", func(s *sight) { s.cluster.state.Nodes[1].Labels["nvidia.com/mig.config.state"] = "failed" }, all},
		{"a server that has just joined", func(s *sight) {
			s.cluster.state.Nodes[1].Labels = nil
			s.cluster.state.Nodes[1].Annotations = map[string]string{}
		}, "gpu-1/smoke gpu-1/sharing gpu-1/sharing-proof cluster/gpu-ready"},
		{"a node that others closed", func(s *sight) {
			s.cluster.state.Nodes[1].Cordoned = true
			s.cluster.state.Nodes[1].Labels["nvidia.com/mig.config"] = "all-disabled"
		}, "gpu-1/drain gpu-1/sharing gpu-1/sharing-proof cluster/gpu-ready"},
	} {
		s := settledMIG()
		tc.drift(&s)
		var ids []string
		for _, a := range w.contents(s, pure()).actions {
			ids = append(ids, a.ID)
		}
		if got := strings.Join(ids, " "); got != tc.want {
			t.Errorf("%s: pending %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestSlicesThatOthersCutStay(t *testing.T) {
	w := clusterOf(t, "server-1", "gpu-1")
	s := settledSight(t, w, 0, 2)
	cutNode(&s.cluster.state.Nodes[1], "all-1g.10gb", "NVIDIA-H100-PCIe-MIG-1g.10gb", map[string]int64{"nvidia.com/gpu": 14})
	delete(s.cluster.state.Nodes[1].Annotations, migAnnotation)
	for _, a := range w.contents(s, pure()).actions {
		if a.Machine == "gpu-1" {
			t.Errorf("pending: %s", a.ID)
		}
	}
}

func TestAProfileTheCardLacksBlocksTheMachine(t *testing.T) {
	w := sharedBy(t, clusterOf(t, "server-1", "gpu-1"), "{mig: 1g.5gb}")
	b := w.contents(sightOf(w, 0, 2), pure())
	if !b.out["gpu-1"] || !strings.Contains(render(b), "NVIDIA H100 PCIe has no profile 1g.5gb; it has 1g.10gb") {
		t.Errorf("a profile of another card is planned:\n%s", render(b))
	}
}

func TestEachProfileOfANodeHasItsTest(t *testing.T) {
	facts := fresh(1, 1)
	facts.SMI.Value.GPUs[0].Slices = []host.Slice{{UUID: "MIG-a", Profile: "1g.10gb"}, {UUID: "MIG-b", Profile: "1g.10gb"}, {UUID: "MIG-c", Profile: "3g.40gb"}}
	state := kube.State{Nodes: []kube.Node{{Name: "gpu-1", Labels: map[string]string{"nvidia.com/mig.config": "all-balanced"},
		Allocatable: map[string]int64{"nvidia.com/gpu": 0, "nvidia.com/mig-1g.10gb": 2, "nvidia.com/mig-3g.40gb": 1}}}}
	tests := smokeTests("gpu-1", facts, state)
	if len(tests) != 2 || len(tests[0].Host) != 2 || tests[0].Allocatable != 2 || tests[1].Host[0].UUID != "MIG-c" || tests[1].Host[0].Of != facts.SMI.Value.GPUs[0].UUID {
		t.Fatalf("%+v", tests)
	}
	for _, test := range tests {
		if status, finding := smoke.Count(test); status != smoke.Passed {
			t.Errorf("%s is counted wrong: %+v", test.Resource, finding)
		}
	}
}
