package doctor

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/kube"
)

// lineLimit cuts a line of a user's log.
const lineLimit = 200

// Reason is why one pod that asks for GPUs does not run, or does not get on.
type Reason struct {
	// Pod is namespace/name.
	Pod  string `json:"pod"`
	Node string `json:"node,omitempty"`
	// Code is the entry of the catalogue; Why a sentence.
	Code diag.Code `json:"code"`
	Why  string    `json:"why"`
}

// Reasons are those of all pods of users that ask for GPUs, also where a finding
// of the cluster explains them already.
func Reasons(seen Seen) []Reason {
	own := (&exam{seen: seen}).namespaces()
	out := []Reason{}
	for i := range seen.Pods {
		p := &seen.Pods[i]
		if own[p.Namespace] || len(kube.GPURequests(&p.Spec)) == 0 {
			continue
		}
		code, why := WhyNot(p, seen)
		if code == "" {
			code, why = besideFaults(p, seen)
		}
		if code != "" {
			out = append(out, Reason{Pod: name(p), Node: p.Spec.NodeName, Code: code, Why: why})
		}
	}
	return out
}

// dying: what a pod's own texts do not explain may stand in its log, in what its
// image asks of the driver, or in what its machine says of the GPUs.
func dying(p *corev1.Pod, seen Seen, why string) (diag.Code, string) {
	if why == "" {
		return "", ""
	}
	if code, line := lastWords(p, seen); code != "" {
		return code, "its log ends with: " + line
	}
	if seen.Unfit != nil && p.Spec.NodeName != "" {
		for _, c := range p.Spec.Containers {
			if no := seen.Unfit(c.Image, p.Spec.NodeName); no != "" && len(kube.GPUResources(c.Resources.Limits)) > 0 {
				return "smoke-image-too-new", no
			}
		}
	}
	for _, f := range seen.Faults[p.Spec.NodeName] {
		return f.Code, "it failed on a machine whose GPUs are at fault (" + f.Evidence + "): " + why
	}
	return "", ""
}

// hangs: a program that lost its GPU often goes on waiting; nothing but its log
// shows that.
func hangs(p *corev1.Pod, seen Seen) (diag.Code, string) {
	code, line := lastWords(p, seen)
	if code == "" {
		return "", ""
	}
	return code, "it runs, and its log ends with: " + line
}

// besideFaults: nobody outside the node knows which of its GPUs a pod has.
func besideFaults(p *corev1.Pod, seen Seen) (diag.Code, string) {
	if p.Status.Phase != corev1.PodRunning {
		return "", ""
	}
	for _, f := range seen.Faults[p.Spec.NodeName] {
		return f.Code, "it runs on a machine whose GPUs are at fault, its own may be among them: " + f.Evidence
	}
	return "", ""
}

// spoken are failures that programs tell of in words of their own. Logs hold
// anything; other entries are not looked for in them.
func spoken() []diag.Code {
	return []diag.Code{
		"nvml-lost", "nvml-permissions", "driver-version-mismatch", "cuda-insufficient", "smoke-image-too-old", "smoke-image-too-new",
		"fabric-manager-down", "gpu-lost", "gpu-ecc-uncorrected", "memlock-low", "shm-small",
	}
}

// lastWords finds the last line of a pod's log that an entry knows.
func lastWords(p *corev1.Pod, seen Seen) (diag.Code, string) {
	lines := strings.Split(strings.TrimSpace(seen.Tails[name(p)]), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		for _, found := range diag.ExplainText(lines[i]) {
			if !slices.Contains(spoken(), found.Code) {
				continue
			}
			line := strings.Join(strings.Fields(lines[i]), " ")
			if len(line) > lineLimit {
				line = strings.ToValidUTF8(line[:lineLimit], "") + " ..."
			}
			return found.Code, line
		}
	}
	return "", ""
}
