package doctor

import (
	"fmt"
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/kube"
	"github.com/gpuctl/gpuctl/internal/smoke/podreason"
)

// pods looks at everything users run, and what of it does not.
func (e *exam) pods() {
	own := e.namespaces()
	for i := range e.seen.Pods {
		p := &e.seen.Pods[i]
		if own[p.Namespace] {
			continue
		}
		wants := kube.GPURequests(&p.Spec)
		e.leftBehind(p)
		if len(wants) == 0 {
			e.uninvited(p)
			continue
		}
		e.shape(p)
		e.image(p)
		if code, why := WhyNot(p, e.seen); code != "" {
			e.raise(code, p.Spec.NodeName, "%s: %s", name(p), why)
		}
	}
	e.gangs()
}

// WhyNot says in a sentence why a pod that asks for GPUs does not run, or runs
// without getting on; the code is empty for one that does, has ended well, or
// simply starts.
func WhyNot(p *corev1.Pod, seen Seen) (diag.Code, string) {
	var events []corev1.Event
	for _, ev := range seen.Events {
		if ev.InvolvedObject.Kind == "Pod" && ev.InvolvedObject.Namespace == p.Namespace && ev.InvolvedObject.Name == p.Name {
			events = append(events, ev)
		}
	}
	switch {
	case p.Status.Phase == corev1.PodFailed:
		why := podreason.Of(*p, nil)
		if code, said := refused(p, why); code != "" {
			return code, said
		}
		return dying(p, seen, why)
	case p.DeletionTimestamp != nil, p.Status.Phase == corev1.PodSucceeded:
		return "", ""
	case podreason.Ready(*p):
		return hangs(p, seen)
	case p.Spec.NodeName == "" && p.Status.Phase == corev1.PodPending:
		return unplaced(p, seen)
	}
	why := podreason.Of(*p, events)
	if code := words(p, events, why); code != "" {
		return code, why
	}
	if strings.Contains(why, "FailedMount") || strings.Contains(why, "FailedAttachVolume") {
		return "pod-volume", why
	}
	return dying(p, seen, why)
}

// words finds the entry that the pod's own texts speak of: the reason, then all
// warnings, uncut, for the telling words often stand last.
func words(p *corev1.Pod, events []corev1.Event, why string) diag.Code {
	var all strings.Builder
	all.WriteString(why)
	for _, c := range append(append([]corev1.ContainerStatus{}, p.Status.InitContainerStatuses...), p.Status.ContainerStatuses...) {
		if c.State.Waiting != nil {
			all.WriteString(" " + c.State.Waiting.Message)
		}
		for _, end := range []*corev1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
			if end != nil {
				all.WriteString(" " + end.Message)
			}
		}
	}
	for _, ev := range events {
		if ev.Type == corev1.EventTypeWarning {
			all.WriteString(" " + ev.Message)
		}
	}
	if found := diag.ExplainText(all.String()); len(found) > 0 {
		return found[0].Code
	}
	return ""
}

// refused tells why a kubelet turned a pod away. A program that failed by
// itself is its owner's business, unless its last words are known.
func refused(p *corev1.Pod, why string) (diag.Code, string) {
	switch {
	case strings.Contains(why, "maximum request size for shared resources"):
		return "smoke-shared-request", "it asks for several units of a shared GPU, one is the most: " + why
	case strings.Contains(why, "no healthy devices present"):
		return "admission-after-restart", "the kubelet refused it before the device plugin was back; it never runs again, delete it"
	case strings.Contains(why, "UnexpectedAdmissionError"):
		return "smoke-admission-refused", why
	case p.Status.Reason == "Evicted":
		return "node-pressure", why
	}
	for _, c := range p.Status.ContainerStatuses {
		if end := c.State.Terminated; end != nil {
			if found := diag.ExplainText(end.Message); len(found) > 0 {
				return found[0].Code, why
			}
		}
	}
	return "", ""
}

// shape looks at a GPU pod's definition.
func (e *exam) shape(p *corev1.Pod) {
	if p.Spec.HostUsers != nil && !*p.Spec.HostUsers {
		e.raise("user-namespace-pod", p.Spec.NodeName, "%s has hostUsers: false", name(p))
	}
	for _, c := range p.Spec.InitContainers {
		sidecar := c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
		if !sidecar && len(kube.GPUResources(c.Resources.Limits)) > 0 {
			e.inform("pods-fail-on-restart", p.Spec.NodeName, "%s: init container %s asks for a GPU", name(p), c.Name)
		}
	}
}

// uninvited: a pod that asks for no GPU and names them to the runtime itself.
func (e *exam) uninvited(p *corev1.Pod) {
	if p.Status.Phase != corev1.PodRunning || p.Labels["app.kubernetes.io/managed-by"] == "gpuctl" {
		return
	}
	for _, c := range p.Spec.Containers {
		if v := env(c, "NVIDIA_VISIBLE_DEVICES"); v != "" && v != "void" && v != "none" {
			e.raise("gpu-visible-without-request", p.Spec.NodeName, "%s asks for no GPU and sets NVIDIA_VISIBLE_DEVICES=%s", name(p), v)
		}
	}
}

// leftBehind: a pod that should go from a node whose kubelet does not answer.
func (e *exam) leftBehind(p *corev1.Pod) {
	if p.DeletionTimestamp == nil || p.Spec.NodeName == "" {
		return
	}
	if n := e.node(p.Spec.NodeName); n == nil || !ready(n) {
		e.raise("pods-stuck-terminating", p.Spec.NodeName, "%s was asked to end and its node is not there to do it", name(p))
	}
}

// gangs: jobs of which some pods run and others find no GPU.
func (e *exam) gangs() {
	type job struct{ running, waiting int }
	jobs := map[string]*job{}
	for i := range e.seen.Pods {
		p := &e.seen.Pods[i]
		label := p.Labels["batch.kubernetes.io/job-name"]
		if label == "" || len(kube.GPURequests(&p.Spec)) == 0 {
			continue
		}
		key := p.Namespace + "/" + label
		if jobs[key] == nil {
			jobs[key] = &job{}
		}
		switch {
		case p.Status.Phase == corev1.PodRunning:
			jobs[key].running++
		case p.Status.Phase == corev1.PodPending && p.Spec.NodeName == "":
			jobs[key].waiting++
		}
	}
	var names []string
	for key, j := range jobs {
		if j.running > 0 && j.waiting > 0 {
			names = append(names, key)
		}
	}
	sort.Strings(names)
	for _, key := range names {
		e.raise("gang-half-placed", "", "job %s: %d pods run, %d wait for GPUs", key, jobs[key].running, jobs[key].waiting)
	}
}

// refusals: pods that were never made show only in events of what makes them.
func (e *exam) refusals() {
	for _, ev := range e.seen.Events {
		if ev.Reason != "FailedCreate" || ev.Type != corev1.EventTypeWarning {
			continue
		}
		what := fmt.Sprintf("%s %s/%s: %s", strings.ToLower(ev.InvolvedObject.Kind), ev.InvolvedObject.Namespace, ev.InvolvedObject.Name, strings.Join(strings.Fields(ev.Message), " "))
		switch message := strings.ToLower(ev.Message); {
		case strings.Contains(message, "exceeded quota") && strings.Contains(message, "nvidia.com/"):
			e.raise("pod-quota", "", "%s", what)
		case strings.Contains(message, "violates podsecurity") && e.namespaces()[ev.InvolvedObject.Namespace]:
			e.raise("pod-security", "", "%s", what)
		case strings.Contains(message, "runtimeclass") && strings.Contains(message, "not found"):
			e.raise("pod-runtime-class", "", "%s", what)
		}
	}
}
