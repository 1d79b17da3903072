//go:build lab && full

package e2e_test

import (
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/e2e/lab/machine"
	"github.com/gpuctl/gpuctl/e2e/scene"
)

// TestFullStandAlonePlugin: with the GPU Operator off, NVIDIA's device plugin from
// its own chart gives pods their GPUs; they are proven, and a pod of a user gets
// one without a runtime class.
func TestFullStandAlonePlugin(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "plugin")
	m := s.Machines(machine.Spec{Name: "server"}, machine.Spec{Name: "gpu", GPU: scene.H100(2)})
	s.Write(scene.Cluster{
		Members: []scene.Member{{Machine: m[0]}, {Machine: m[1], GPUs: 2}},
		Spec:    map[string]any{"gpu": map[string]any{"operator": map[string]any{"enabled": false}}},
	})
	s.Must(0, "apply", "--yes")
	var got status
	s.Decode(s.Must(0, "status", "-o", "json"), &got)
	for _, n := range got.Nodes {
		if with := n.Name == m[1].Name; !n.Ready || n.Proven != with || with != (n.GPUs == 2) {
			t.Errorf("status of %s: %+v; want two proven GPUs on %s alone", n.Name, n, m[1].Name)
		}
	}
	if len(got.Nodes) != 2 || got.Operator != "absent" {
		t.Errorf("status: %+v", got)
	}
	var pods struct {
		Items []struct {
			Metadata struct{ Namespace, Name string }
		}
	}
	s.Kubectl(&pods, "get pods -A -o json")
	plugin := false
	for _, p := range pods.Items {
		plugin = plugin || (p.Metadata.Namespace == "nvidia-device-plugin" && strings.HasPrefix(p.Metadata.Name, "nvidia-device-plugin-"))
		if p.Metadata.Namespace == "gpu-operator" {
			t.Errorf("the operator is there: %s", p.Metadata.Name)
		}
	}
	if !plugin {
		t.Errorf("no pod of the plugin: %+v", pods.Items)
	}
	if log := s.Pod(m[1].Name, "docker.io/library/busybox:1.36.1", 1, "ls /dev | grep -c '^nvidia[0-9]'"); strings.TrimSpace(log) != "1" {
		t.Errorf("a pod that asked for one GPU sees %s", log)
	}
	nothingChanges(t, s, s.EndState())
}
