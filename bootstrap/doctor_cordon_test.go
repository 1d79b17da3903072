package bootstrap

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuctl/gpuctl/internal/diag"
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
