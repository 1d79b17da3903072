package bootstrap

import (
	"context"
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	restclient "k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/gpuctl/gpuctl/internal/kube"
	"github.com/gpuctl/gpuctl/internal/sharing"
	"github.com/gpuctl/gpuctl/internal/smoke"
)

func TestANodeWithACardIsWaitedFor(t *testing.T) {
	labels := func(pairs ...string) map[string]string {
		out := map[string]string{}
		for _, p := range pairs {
			key, value, _ := strings.Cut(p, "=")
			out[key] = value
		}
		return out
	}
	const card, present, plugin = "feature.node.kubernetes.io/pci-10de.present=true", "nvidia.com/gpu.present=true", "nvidia.com/gpu.deploy.device-plugin=true"
	for name, c := range map[string]struct {
		node kube.Node
		want string
	}{
		"no card":            {kube.Node{Ready: true}, ""},
		"not reached yet":    {kube.Node{Ready: true, Labels: labels(card)}, "the operator has not come to n yet"},
		"nothing offered":    {kube.Node{Ready: true, Labels: labels(card, present, plugin)}, "n offers no GPUs yet"},
		"kept off":           {kube.Node{Ready: true, Labels: labels(card, present, "nvidia.com/gpu.deploy.device-plugin=false")}, ""},
		"operands are off":   {kube.Node{Ready: true, Labels: labels(card, present, plugin, "nvidia.com/gpu.deploy.operands=false")}, ""},
		"a node that is out": {kube.Node{Labels: labels(card)}, ""},
		"offered":            {kube.Node{Ready: true, Labels: labels(card, present, plugin, "nvidia.com/gpu.count=2")}, ""},
	} {
		c.node.Name = "n"
		if got := unsettled(c.node); (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestTheExporterListsWhatNobodyCanAsk: only of nodes without a machine, and never of slices.
func TestTheExporterListsWhatNobodyCanAsk(t *testing.T) {
	w := existingOf(t, byKubeconfig)
	metrics := `DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-b",modelName="NVIDIA H100 PCIe"} 0
DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-a",modelName="NVIDIA H100 PCIe"} 7
`
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "gpu-operator", Name: "dcgm", Labels: map[string]string{"app": dcgmApp}},
		Spec: corev1.PodSpec{NodeName: "gpu-1"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	set := fake.NewClientset(pod)
	set.PrependProxyReactor("pods", func(clienttesting.Action) (bool, restclient.ResponseWrapper, error) {
		return true, answer(metrics), nil
	})
	tests := []smoke.Node{{Name: "gpu-1", Resource: sharing.GPU, PCI: smoke.Unknown}, {Name: "gpu-2", Resource: sharing.GPU, PCI: smoke.Unknown}, {Name: "gpu-1", Resource: "nvidia.com/mig-1g.10gb", Beside: true}}
	got := w.listedRemotely(t.Context(), kube.New(set, nil), tests, 0, nil)
	if len(got[0].Host) != 2 || got[0].Host[0].UUID != "GPU-a" || !got[0].Remote {
		t.Errorf("gpu-1: %+v", got[0])
	}
	if got[1].Host != nil || got[2].Host != nil || got[2].Remote {
		t.Errorf("nobody tells of these: %+v", got[1:])
	}
	own := clusterOf(t, "server-1", "gpu-1")
	if got := own.listedRemotely(t.Context(), kube.New(set, nil), tests, 0, nil); got[0].Host != nil || got[0].Remote {
		t.Errorf("a machine of gpuctl's own cluster is asked itself: %+v", got[0])
	}
}

// answer is what the API server's proxy brings back.
type answer string

func (a answer) DoRaw(context.Context) ([]byte, error) { return []byte(a), nil }
func (a answer) Stream(context.Context) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(string(a))), nil
}
