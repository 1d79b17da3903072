package doctor

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/smoke/podreason"
)

// namespaces are those of GPU Operators.
func (e *exam) namespaces() map[string]bool {
	out := map[string]bool{}
	for _, d := range e.operators() {
		out[d.Namespace] = true
	}
	return out
}

// operands looks at the pods that the operator runs on nodes.
func (e *exam) operands() {
	own := e.namespaces()
	for i := range e.seen.Pods {
		p := &e.seen.Pods[i]
		if !own[p.Namespace] || podreason.Ready(*p) || p.DeletionTimestamp != nil || e.unplacedOperator(p) {
			continue
		}
		if code, why := e.operandTrouble(p); code != "" {
			e.raise(code, p.Spec.NodeName, "%s: %s", name(p), why)
		}
	}
	for key, events := range e.events {
		if parts := strings.Split(key, "/"); len(parts) != 3 || !own[parts[1]] {
			continue
		}
		for _, event := range events {
			if event.Type == corev1.EventTypeWarning && strings.Contains(event.Message, "configmap") && strings.Contains(event.Message, "not found") && strings.Contains(event.InvolvedObject.Name, "device-plugin") {
				e.raise("plugin-config-missing", "", "%s: %s", event.InvolvedObject.Name, event.Message)
			}
		}
	}
}

// operandTrouble names what keeps an operand's pod from being ready; "" where
// it simply starts.
func (e *exam) operandTrouble(p *corev1.Pod) (diag.Code, string) {
	for _, c := range append(append([]corev1.ContainerStatus{}, p.Status.InitContainerStatuses...), p.Status.ContainerStatuses...) {
		if end := c.LastTerminationState.Terminated; end != nil && end.Reason == "OOMKilled" && strings.HasPrefix(p.Name, "gpu-operator") {
			return "operator-out-of-memory", c.Name + " was killed for memory"
		}
	}
	why := podreason.Of(*p, e.eventsOf(p))
	driver := strings.Contains(p.Name, "nvidia-driver") || strings.Contains(p.Name, "driver-daemonset")
	if driver && strings.Contains(strings.ToLower(why), "pull") && strings.Contains(strings.ToLower(why), "not found") {
		return "driver-image-missing", why
	}
	if code := words(p, e.eventsOf(p), why); code != "" {
		return code, why
	}
	for _, c := range p.Status.InitContainerStatuses {
		if c.State.Running != nil && strings.HasSuffix(c.Name, "-validation") {
			return "operand-waits", "its init container " + c.Name + " has not ended"
		}
	}
	switch {
	case !strings.Contains(why, "CrashLoopBackOff") && !strings.Contains(why, "exit "):
		return "", ""
	case strings.Contains(why, "nvidia-peermem"):
		return "peermem-restart", why
	case strings.Contains(p.Name, "device-plugin"):
		return "device-plugin-failing", why
	case strings.Contains(p.Name, "dcgm-exporter"):
		return "dcgm-unreachable", why
	case strings.Contains(p.Name, "validator"):
		return "operand-waits", why
	}
	return "operator-not-ready", why
}
