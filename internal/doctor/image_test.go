package doctor

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuctl/gpuctl/internal/cuda"
	"github.com/gpuctl/gpuctl/internal/diag"
)

// A pod whose image asks for more than its node's driver serves (case 060): the
// doctor says so from the image itself, before and beside what events say.
func TestDriverTooOldForThePodsImage(t *testing.T) {
	const ref = "nvcr.io/nvidia/pytorch:25.09-py3"
	old := cuda.Node{Driver: "550.90.07", GPUs: []cuda.GPU{{Name: "NVIDIA GeForce RTX 4090", Compute: "8.9"}}}
	recent := cuda.Node{Driver: "580.95.05", GPUs: []cuda.GPU{{Name: "NVIDIA H100 80GB HBM3", Compute: "9.0"}}}
	volta := cuda.Node{Driver: "580.95.05", GPUs: []cuda.GPU{{Name: "Tesla V100-SXM2-16GB", Compute: "7.0"}}}
	image := cuda.OfConfig([]string{"CUDA_VERSION=13.0.1", "NVIDIA_REQUIRE_CUDA=cuda>=13.0"}, nil)
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		hosts  map[string]cuda.Node
		images map[string]cuda.Image
		want   string // node/code, "" for nothing of images
		shows  string
	}{
		"crash loop on the old driver": {func(p *corev1.Pod) { waiting(p, "CrashLoopBackOff", "back-off 5m0s restarting failed container") }, map[string]cuda.Node{"gpu-1": old, "gpu-2": recent},
			map[string]cuda.Image{ref: image}, "gpu-1/image-needs-newer-driver", "team-a/train: image " + ref + ": it asks for CUDA 13.0 (driver 580.65.06 or later), and driver 550.90.07 serves CUDA 12.4"},
		"what the runtime says of it follows from that": {func(p *corev1.Pod) {
			waiting(p, "RunContainerError", "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=13.0, please update your driver")
		}, map[string]cuda.Node{"gpu-1": old}, map[string]cuda.Image{ref: image}, "gpu-1/image-needs-newer-driver", "driver 580.65.06 or later"},
		"failed on a card that CUDA 13 dropped": {func(p *corev1.Pod) { p.Status = corev1.PodStatus{Phase: corev1.PodFailed} }, map[string]cuda.Node{"gpu-1": volta},
			map[string]cuda.Image{ref: image}, "gpu-1/image-drops-gpu", "compute capability 7.0"},
		"pending, and no node would run it": {func(p *corev1.Pod) { *p = gpuPod("train", "", 1) }, map[string]cuda.Node{"gpu-1": old},
			map[string]cuda.Image{ref: image}, "/image-needs-newer-driver", "gpu-1: it asks for CUDA 13.0"},
		"pending, and one node would":    {func(p *corev1.Pod) { *p = gpuPod("train", "", 1) }, map[string]cuda.Node{"gpu-1": old, "gpu-2": recent}, map[string]cuda.Image{ref: image}, "", ""},
		"crash loop for another reason":  {func(p *corev1.Pod) { waiting(p, "CrashLoopBackOff", "back-off") }, map[string]cuda.Node{"gpu-1": recent}, map[string]cuda.Image{ref: image}, "", ""},
		"it runs, whatever the image":    {func(*corev1.Pod) {}, map[string]cuda.Node{"gpu-1": old}, map[string]cuda.Image{ref: image}, "", ""},
		"the image was not read":         {func(p *corev1.Pod) { waiting(p, "CrashLoopBackOff", "back-off") }, map[string]cuda.Node{"gpu-1": old}, nil, "", ""},
		"nothing is known of the node":   {func(p *corev1.Pod) { waiting(p, "CrashLoopBackOff", "back-off") }, nil, map[string]cuda.Image{ref: image}, "", ""},
		"the image says nothing of CUDA": {func(p *corev1.Pod) { waiting(p, "CrashLoopBackOff", "back-off") }, map[string]cuda.Node{"gpu-1": old}, map[string]cuda.Image{ref: {}}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := healthy()
			p := gpuPod("train", "gpu-1", 1)
			c.change(&p)
			p.Spec.Containers[0].Image = ref
			s.Pods = append(s.Pods, p)
			s.Images, s.Hosts = c.images, c.hosts
			var got, text []string
			for _, f := range diag.Reduce(Findings(s)) {
				if strings.HasPrefix(string(f.Code), "image-") || strings.HasPrefix(string(f.Code), "smoke-image") {
					got, text = append(got, f.Machine+"/"+string(f.Code)), append(text, f.Evidence)
				}
			}
			if strings.Join(got, " ") != c.want || !strings.Contains(strings.Join(text, "\n"), c.shows) {
				t.Errorf("%q %q, want %q with %q", got, text, c.want, c.shows)
			}
			asked := Images(s.Objects)
			if wants := !strings.Contains(name, "it runs"); slices.Contains(asked, ref) != wants {
				t.Errorf("images to read: %v", asked)
			}
		})
	}
}

func TestHostOfLabels(t *testing.T) {
	n := gpuNode("gpu-1", "10.0.0.11")
	if _, known := HostOf(n); known {
		t.Error("a node without the driver's version is known")
	}
	n.Labels["nvidia.com/cuda.driver-version.full"] = "550.90.07"
	n.Labels["nvidia.com/gpu.compute.major"], n.Labels["nvidia.com/gpu.compute.minor"] = "9", "0"
	if h, known := HostOf(n); !known || h.Driver != "550.90.07" || h.GPUs[0] != (cuda.GPU{Name: "NVIDIA H100 80GB HBM3", Compute: "9.0"}) {
		t.Errorf("%+v", h)
	}
}

// imageTroubles are images and configurations of users that do not fit.
func imageTroubles() map[string]trouble {
	crashing := func(env string, host cuda.Node) func(*Seen) {
		return func(s *Seen) {
			p := gpuPod("train", "gpu-1", 1)
			waiting(&p, "CrashLoopBackOff", "back-off 5m0s restarting failed container")
			p.Spec.Containers[0].Image = "img:1"
			s.Pods = append(s.Pods, p)
			s.Images, s.Hosts = map[string]cuda.Image{"img:1": cuda.OfConfig([]string{env}, nil)}, map[string]cuda.Node{"gpu-1": host}
		}
	}
	host := func(driver, name, compute string) cuda.Node {
		return cuda.Node{Driver: driver, GPUs: []cuda.GPU{{Name: name, Compute: compute}}}
	}
	config := func(text string) func(*Seen) {
		return func(s *Seen) { s.PluginConfigs = map[string]string{"gpu-operator/x key any": text} }
	}
	return map[string]trouble{
		"image needs a newer driver":  {crashing("CUDA_VERSION=13.0.1", host("550.90.07", "NVIDIA L40S", "8.9")), "image-needs-newer-driver", "gpu-1", "CUDA 13 needs driver 580.65.06"},
		"image drops the card":        {crashing("CUDA_VERSION=13.0.1", host("580.95.05", "Tesla V100-SXM2-16GB", "7.0")), "image-drops-gpu", "gpu-1", "7.0"},
		"image is older than the GPU": {crashing("CUDA_VERSION=11.8.0", host("580.95.05", "NVIDIA B200", "10.0")), "image-older-than-gpu", "gpu-1", "10.0"},
		"keys without effect":         {config("flags: {renameByDefault: true}"), "sharing-dead-keys", "", "flags.renameByDefault"},
		"what the plugin rejects":     {config("sharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 49}]}}"), "sharing-refused", "", "48"},
	}
}
