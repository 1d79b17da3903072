//go:build lab && full

package e2e_test

import (
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/e2e/lab/gpu"
	"github.com/gpuctl/gpuctl/e2e/lab/machine"
	"github.com/gpuctl/gpuctl/e2e/scene"
)

// TestFullMoveToAnotherSet: operator and toolkit move by one node first, which is
// emptied and proves its GPUs; what does not serve costs that node alone, and the
// old set is the way back.
func TestFullMoveToAnotherSet(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "move")
	ms := s.Machines(machine.Spec{Name: "server"}, machine.Spec{Name: "a", GPU: scene.H100(1)}, machine.Spec{Name: "b", GPU: scene.H100(1)})
	with := func(change func(set map[string]any)) {
		s.Write(scene.Cluster{
			Members: []scene.Member{{Machine: ms[0]}, {Machine: ms[1], GPUs: 1}, {Machine: ms[2], GPUs: 1}},
			Set:     s.SetFile(change),
		})
	}
	before := func(set map[string]any) { set["toolkit"].(map[string]any)["version"] = gpu.OlderToolkit }
	after := func(set map[string]any) {
		operator := set["operator"].(map[string]any)
		operator["version"] = gpu.NextOperator
		delete(operator, "sha256")
	}
	broken := func(set map[string]any) {
		after(set)
		set["operator"].(map[string]any)["values"] = map[string]any{"devicePlugin": map[string]any{"version": "v0.0.0-missing"}}
	}
	with(before)
	s.Must(0, "apply", "--yes")
	runs(t, s, ms[1:], gpu.Operator, gpu.OlderToolkit)
	proven(t, s, map[string]int{ms[0].Name: 0, ms[1].Name: 1, ms[2].Name: 1})

	// A set whose device plugin cannot be had: it is seen on the first node, and nowhere else.
	with(broken)
	mentions(t, "the plan", s.Must(0, "plan", "-v").Stdout, "move GPU Operator "+gpu.Operator+" -> "+gpu.NextOperator, "way back",
		`devicePlugin.version: (absent) -> "v0.0.0-missing"`, "let pods with GPUs leave the node", "after "+ms[1].Name)
	s.Must(exitFindings, "apply") // nobody there to agree to a drain
	mentions(t, "a set that does not serve", s.Must(exitAction, "apply", "--yes", "--timeout", "4m").Stderr, "ImagePull")
	runs(t, s, ms[2:], gpu.Operator, gpu.OlderToolkit)
	if n := s.Nodes()[ms[2].Name]; n.Spec.Unschedulable || n.Status.Allocatable["nvidia.com/gpu"] != "1" {
		t.Errorf("the other node: %+v", n)
	}

	// The way back is the set of before.
	with(before)
	s.Must(0, "apply", "--yes")
	runs(t, s, ms[1:], gpu.Operator, gpu.OlderToolkit)
	proven(t, s, map[string]int{ms[0].Name: 0, ms[1].Name: 1, ms[2].Name: 1})

	with(after)
	s.Must(0, "apply", "--yes")
	runs(t, s, ms[1:], gpu.NextOperator, gpu.Toolkit)
	proven(t, s, map[string]int{ms[0].Name: 0, ms[1].Name: 1, ms[2].Name: 1})
	nothingChanges(t, s, s.EndState())
	s.Must(0, "smoke")
}

// runs wants nodes to run the operator's pods of one version, and a toolkit's.
func runs(t *testing.T, s *scene.Scene, nodes []*machine.Machine, operator, toolkit string) {
	t.Helper()
	var list struct {
		Items []struct {
			Spec struct {
				NodeName       string
				InitContainers []struct{ Image string }
			}
		}
	}
	s.Kubectl(&list, "get pods -n gpu-operator -l app=nvidia-operator-validator -o json")
	for _, m := range nodes {
		found := 0
		for _, p := range list.Items {
			if p.Spec.NodeName == m.Name && len(p.Spec.InitContainers) > 0 {
				found++
				if image := p.Spec.InitContainers[0].Image; !strings.HasSuffix(image, ":"+operator) {
					t.Errorf("%s runs %s, want %s", m.Name, image, operator)
				}
			}
		}
		if found != 1 {
			t.Errorf("%s has %d pods of the validator", m.Name, found)
		}
		if got := s.Exec(m, "dpkg-query -W -f '${Version}' nvidia-container-toolkit && apt-mark showhold | grep -cx nvidia-container-toolkit"); got != toolkit+"1" {
			t.Errorf("%s has toolkit and holds %s, want %s1", m.Name, got, toolkit)
		}
	}
}
