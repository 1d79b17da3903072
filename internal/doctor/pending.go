package doctor

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/kube"
)

// unplaced says why the scheduler has no node for a pod. Nodes are judged as the
// scheduler does; its own message counts where that finds nothing.
func unplaced(p *corev1.Pod, seen Seen) (diag.Code, string) {
	message := ""
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			message = strings.Join(strings.Fields(c.Message), " ")
		}
	}
	if strings.Contains(message, "PersistentVolumeClaim") {
		return "pod-volume", message
	}
	wants := kube.GPURequests(&p.Spec)
	for _, resource := range sorted(wants) {
		if code, why := unoffered(resource, wants[resource], seen); code != "" {
			return code, why
		}
	}
	if code, why := barred(p, wants, seen); code != "" {
		return code, why
	}
	if found := diag.ExplainText(message); len(found) > 0 {
		return found[0].Code, message
	}
	return "", ""
}

// unoffered: no node has the resource, under this name or well enough.
func unoffered(resource string, n int64, seen Seen) (diag.Code, string) {
	others, broken, most := map[string]bool{}, []string{}, int64(0)
	for i := range seen.Nodes {
		node := &seen.Nodes[i]
		allocatable := kube.GPUResources(node.Status.Allocatable)
		most = max(most, allocatable[resource])
		if kube.GPUResources(node.Status.Capacity)[resource] > 0 && allocatable[resource] == 0 {
			broken = append(broken, node.Name)
		}
		for name, have := range allocatable {
			if have > 0 && name != resource {
				others[name] = true
			}
		}
	}
	switch {
	case most >= n:
		return "", ""
	case most > 0:
		return "pod-no-free-gpu", fmt.Sprintf("it asks for %d %s, and no single node has more than %d", n, resource, most)
	case len(broken) > 0:
		return "gpu-unhealthy", fmt.Sprintf("the %s of %s are there and not allocatable", resource, strings.Join(broken, ", "))
	case len(others) > 0:
		var names []string
		for o := range others {
			names = append(names, o)
		}
		sort.Strings(names)
		kind := "the cluster offers"
		if strings.HasPrefix(resource, "nvidia.com/mig-") {
			kind = "no node has this MIG profile; the cluster offers"
		}
		return "pod-resource-renamed", fmt.Sprintf("it asks for %s; %s %s", resource, kind, strings.Join(names, ", "))
	}
	return "smoke-nothing-allocatable", "no node of the cluster offers " + resource
}

// barred looks at the nodes that have enough of everything: what keeps the pod
// from them. Where GPUs are the trouble, nobody has enough free.
func barred(p *corev1.Pod, wants map[string]int64, seen Seen) (diag.Code, string) {
	var full []string
	bars := map[diag.Code][]string{}
	for i := range seen.Nodes {
		n := &seen.Nodes[i]
		allocatable := kube.GPUResources(n.Status.Allocatable)
		if !covers(allocatable, wants) {
			continue
		}
		free := freeOn(n, seen)
		switch taint, held := untolerated(p, n); {
		case !selects(p, n):
			bars["pod-node-selector"] = append(bars["pod-node-selector"], n.Name)
		case !ready(n):
			bars["node-not-ready"] = append(bars["node-not-ready"], n.Name)
		case !covers(free, wants):
			full = append(full, fmt.Sprintf("%s has %s free", n.Name, amount(only(free, wants))))
		case n.Spec.Unschedulable:
			bars["node-cordoned"] = append(bars["node-cordoned"], n.Name)
		case held && taint.Key == unprovenTaint:
			bars["pod-node-unproven"] = append(bars["pod-node-unproven"], n.Name)
		case held:
			bars["pod-untolerated-taint"] = append(bars["pod-untolerated-taint"], fmt.Sprintf("%s (%s)", n.Name, taint.ToString()))
		default:
			return "", "" // GPUs are not the trouble
		}
	}
	// A node with free GPUs and one thing in the way tells more than one that is full.
	for _, b := range []struct {
		code diag.Code
		text string
	}{
		{"pod-node-unproven", "free GPUs are on nodes that have not passed their test: %s"},
		{"node-cordoned", "free GPUs are on nodes that are cordoned: %s"},
		{"pod-untolerated-taint", "it does not tolerate the taint of nodes with free GPUs: %s"},
	} {
		if names := bars[b.code]; len(names) > 0 {
			return b.code, fmt.Sprintf(b.text, strings.Join(names, ", "))
		}
	}
	if len(full) > 0 {
		return "pod-no-free-gpu", fmt.Sprintf("it asks for %s; %s", amount(wants), strings.Join(full, ", "))
	}
	if names := bars["node-not-ready"]; len(names) > 0 {
		return "node-not-ready", "its GPUs are on nodes that are not Ready: " + strings.Join(names, ", ")
	}
	if names := bars["pod-node-selector"]; len(names) > 0 {
		return "pod-node-selector", fmt.Sprintf("its node selector %v keeps it from %s", p.Spec.NodeSelector, strings.Join(names, ", "))
	}
	return "", ""
}

func covers(have, want map[string]int64) bool {
	for name, n := range want {
		if have[name] < n {
			return false
		}
	}
	return true
}

func only(of, names map[string]int64) map[string]int64 {
	out := map[string]int64{}
	for name := range names {
		out[name] = of[name]
	}
	return out
}

func freeOn(n *corev1.Node, seen Seen) map[string]int64 {
	free := kube.GPUResources(n.Status.Allocatable)
	for i := range seen.Pods {
		p := &seen.Pods[i]
		if p.Spec.NodeName != n.Name || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		for name, k := range kube.GPURequests(&p.Spec) {
			free[name] = max(0, free[name]-k)
		}
	}
	return free
}

func selects(p *corev1.Pod, n *corev1.Node) bool {
	for key, value := range p.Spec.NodeSelector {
		if n.Labels[key] != value {
			return false
		}
	}
	return true
}

// untolerated is the first taint that keeps new pods like this one away.
func untolerated(p *corev1.Pod, n *corev1.Node) (corev1.Taint, bool) {
	for _, t := range n.Spec.Taints {
		if t.Effect == corev1.TaintEffectPreferNoSchedule || t.Key == "node.kubernetes.io/unschedulable" {
			continue
		}
		if !slices.ContainsFunc(p.Spec.Tolerations, func(o corev1.Toleration) bool { return tolerates(o, t) }) {
			return t, true
		}
	}
	return corev1.Taint{}, false
}

func tolerates(o corev1.Toleration, t corev1.Taint) bool {
	if o.Effect != "" && o.Effect != t.Effect {
		return false
	}
	if o.Operator == corev1.TolerationOpExists {
		return o.Key == "" || o.Key == t.Key
	}
	return o.Key == t.Key && o.Value == t.Value
}
