package doctor

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuctl/gpuctl/internal/cuda"
	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/kube"
	"github.com/gpuctl/gpuctl/internal/smoke/podreason"
)

// maxImages bounds how many images the doctor asks registries for.
const maxImages = 16

// Images are those of pods that ask for GPUs and do not run: the ones whose
// configuration is worth reading, at most 16.
func Images(o kube.Objects) []string {
	var out []string
	for i := range o.Pods {
		p := &o.Pods[i]
		if !ails(p) || len(kube.GPURequests(&p.Spec)) == 0 {
			continue
		}
		for _, c := range gpuContainers(p) {
			if c.Image != "" && !slices.Contains(out, c.Image) && len(out) < maxImages {
				out = append(out, c.Image)
			}
		}
	}
	return out
}

// ails: the pod neither runs, nor has ended well, nor is being taken away.
func ails(p *corev1.Pod) bool {
	return p.Status.Phase != corev1.PodSucceeded && !podreason.Ready(*p) && p.DeletionTimestamp == nil
}

// gpuContainers are the containers that get GPUs.
func gpuContainers(p *corev1.Pod) []corev1.Container {
	var out []corev1.Container
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		if len(kube.GPUResources(c.Resources.Limits)) > 0 {
			out = append(out, c)
		}
	}
	return out
}

// image holds a pod's images against the driver of its node, or of every node
// with GPUs where it has none yet: one that runs it is enough then.
func (e *exam) image(p *corev1.Pod) {
	if !ails(p) {
		return
	}
	for _, c := range gpuContainers(p) {
		image, read := e.seen.Images[c.Image]
		if !read {
			continue
		}
		verdict, judged := e.fits(image, p.Spec.NodeName)
		if judged && verdict.Code != cuda.CodeNotJudged && verdict.Code != "" {
			e.raise(diag.Code(verdict.Code), p.Spec.NodeName, "%s: image %s: %s", name(p), c.Image, verdict.Reason)
		}
	}
}

// fits is the verdict for one node, or the best that any node has; false where nothing is known.
func (e *exam) fits(image cuda.Image, node string) (best cuda.Verdict, judged bool) {
	if node != "" {
		host, known := e.seen.Hosts[node]
		return cuda.Decide(image, host), known
	}
	var names []string
	for name := range e.seen.Hosts {
		names = append(names, name)
	}
	slices.Sort(names)
	rank := map[cuda.Answer]int{cuda.Fails: 1, cuda.Unknown: 2, cuda.Runs: 3}
	for _, name := range names {
		if v := cuda.Decide(image, e.seen.Hosts[name]); rank[v.Answer] > rank[best.Answer] {
			best, judged = v, true
			best.Reason = name + ": " + v.Reason
		}
	}
	return best, judged
}

// HostOf is what a node's labels from GPU feature discovery say of driver and card.
func HostOf(n corev1.Node) (cuda.Node, bool) {
	driver, product := n.Labels["nvidia.com/cuda.driver-version.full"], n.Labels["nvidia.com/gpu.product"]
	if driver == "" || product == "" {
		return cuda.Node{}, false
	}
	compute := ""
	if major := n.Labels["nvidia.com/gpu.compute.major"]; major != "" {
		compute = major + "." + n.Labels["nvidia.com/gpu.compute.minor"]
	}
	return cuda.Node{Driver: driver, GPUs: []cuda.GPU{cuda.OfLabel(product, compute)}}, true
}

// UnfitBy makes the Unfit of Seen: why a node certainly does not run an image.
func UnfitBy(images map[string]cuda.Image, hosts map[string]cuda.Node) func(image, node string) string {
	return func(image, node string) string {
		i, read := images[image]
		host, known := hosts[node]
		if !read || !known {
			return ""
		}
		if v := cuda.Decide(i, host); v.Answer == cuda.Fails {
			return v.Reason
		}
		return ""
	}
}
