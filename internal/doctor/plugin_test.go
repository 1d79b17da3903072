package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/internal/diag"
)

// Case 062 in a living cluster: keys in the wrong place of a ConfigMap that
// somebody wrote; and what follows from the right place, for pods that are there.
func TestPluginConfigsOfOthersCase062(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join("..", "sharing", "testdata", "062", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for name, c := range map[string]struct {
		text, code, shows string
	}{
		"wrong.yaml":           {read("wrong.yaml"), "sharing-dead-keys", "flags.renameByDefault has no effect"},
		"right.yaml":           {read("right.yaml"), "", ""},
		"rename of a resource": {"sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, rename: x, replicas: 4}]}}", "sharing-dead-keys", "resources[0].rename"},
		"both ways at once":    {"sharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 4}]}, timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}", "sharing-refused", "exclude each other"},
	} {
		s := healthy()
		s.PluginConfigs = map[string]string{"gpu-operator/time-slicing key any": c.text}
		found := Findings(s)
		switch {
		case c.code == "" && len(found) > 0:
			t.Errorf("%s: %+v", name, found)
		case c.code != "" && (len(found) != 1 || found[0].Code != diag.Code(c.code) || !strings.Contains(found[0].Evidence, c.shows) || !strings.Contains(found[0].Evidence, "gpu-operator/time-slicing")):
			t.Errorf("%s: %+v, want %s", name, found, c.code)
		}
	}

	// right.yaml: nodes offer nvidia.com/gpu.shared and none of nvidia.com/gpu; every pod that asks for that waits.
	s := healthy()
	for i := range s.Nodes[:2] {
		s.Nodes[i].Status.Capacity = list("nvidia.com/gpu", 0, "nvidia.com/gpu.shared", 16)
		s.Nodes[i].Status.Allocatable = list("nvidia.com/gpu", 0, "nvidia.com/gpu.shared", 16)
	}
	p := gpuPod("train", "", 1)
	if code, why := WhyNot(&p, s); code != "pod-resource-renamed" || !strings.Contains(why, "nvidia.com/gpu.shared") {
		t.Errorf("%s %s", code, why)
	}
}
