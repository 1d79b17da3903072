package bootstrap

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/kube"
)

// TestOnlyNodesWithBrokenGPUsAreCordoned: the evidence stays on the node, other
// trouble closes nothing.
func TestOnlyNodesWithBrokenGPUsAreCordoned(t *testing.T) {
	e, set := engineOf(t, unreachable, []string{"server", "gpu-1", "gpu-2"}, apiNode("server", true, 0), apiNode("gpu-1", true, 0), apiNode("gpu-2", true, 0))
	r := DoctorResult{
		Nodes: []NodeView{{Name: "server"}, {Name: "gpu-1"}, {Name: "gpu-2"}},
		Findings: []diag.Finding{
			diag.Found("gpu-lost", "gpu-1", "0000:18:00.0"), diag.Found("gpu-busy", "gpu-2", "a process"), diag.Found("memory-small", "server", "1 GiB"),
		},
	}
	done, err := e.cordonFaulty(t.Context(), r)
	if err != nil || len(done) != 1 || done[0] != "gpu-1" {
		t.Fatalf("%v %v", done, err)
	}
	for _, name := range []string{"server", "gpu-1", "gpu-2"} {
		n, err := set.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		evidence := n.Annotations[FaultAnnotation]
		if n.Spec.Unschedulable != (name == "gpu-1") || strings.Contains(evidence, "0000:18:00.0") != (name == "gpu-1") {
			t.Errorf("%s: cordoned %t, evidence %q", name, n.Spec.Unschedulable, evidence)
		}
	}
	for _, code := range gpuFaults() {
		if _, ok := diag.Lookup(code); !ok {
			t.Errorf("%s is not in the catalogue", code)
		}
	}
}

func TestStatusNamesGPUsThatAreOutOfService(t *testing.T) {
	state := kube.State{Nodes: []kube.Node{
		{Name: "gpu-1", Capacity: map[string]int64{"nvidia.com/gpu": 8}, Allocatable: map[string]int64{"nvidia.com/gpu": 7}},
		{Name: "gpu-2", Capacity: map[string]int64{"nvidia.com/gpu": 8}, Allocatable: map[string]int64{"nvidia.com/gpu": 8}},
		{Name: "server"},
	}}
	found := unhealthy(state)
	if len(found) != 1 || found[0].Code != "gpu-unhealthy" || found[0].Machine != "gpu-1" || found[0].Evidence != "7 of 8 nvidia.com/gpu are allocatable" {
		t.Errorf("%+v", found)
	}
}

// TestReportHasTimesAndSerials: what a provider asks for.
func TestReportHasTimesAndSerials(t *testing.T) {
	w := clusterOf(t, "server", "gpu-1")
	s := sightOf(w, 0, 1)
	f := s.facts["gpu-1"]
	f.System.Value.UptimeSeconds = 3600
	f.SMI = host.Known(host.SMI{GPUs: []host.GPU{{UUID: "GPU-1", Serial: "1650522000000", PCI: "0000:18:00.0"}}})
	f.KernelLog = host.Known([]host.KernelMsg{{Xid: 79, PCI: "0000:18:00", Uptime: 60.5, Text: "NVRM: Xid (PCI:0000:18:00): 79"}, {Text: "NVRM: without a time"}})
	s.facts["gpu-1"] = f
	e := &Engine{settings: Settings{Inventory: w.config.Inventory()}, want: w}
	now := time.Date(2026, 8, 27, 18, 0, 0, 0, time.UTC)
	r := DoctorResult{Findings: []diag.Finding{diag.Found("gpu-lost", "gpu-1", "x"), diag.Found("memory-small", "server", "y")}, seen: patient{sight: s}}
	got := e.reports(r, now)
	if len(got) != 1 || got[0].Machine != "gpu-1" || got[0].GPUs[0].Serial != "1650522000000" || len(got[0].Faults) != 1 {
		t.Fatalf("%+v", got)
	}
	if want := []string{"2026-08-27T17:01:00Z NVRM: Xid (PCI:0000:18:00): 79", "NVRM: without a time"}; !slices.Equal(got[0].Log, want) {
		t.Errorf("log %q, want %q", got[0].Log, want)
	}
}
