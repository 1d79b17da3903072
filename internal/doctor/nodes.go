package doctor

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuctl/gpuctl/internal/kube"
)

// Labels of the operator and of feature discovery.
const (
	labelMIGState   = "nvidia.com/mig.config.state"
	labelMIGCapable = "nvidia.com/mig.capable"
	labelUpgrade    = "nvidia.com/gpu-driver-upgrade-state"
	labelDeploy     = "nvidia.com/gpu.deploy."
	pausedValue     = "paused-for-driver-upgrade"
	flannelPublicIP = "flannel.alpha.coreos.com/public-ip"
)

func (e *exam) nodes() {
	for i := range e.seen.Nodes {
		n := &e.seen.Nodes[i]
		e.condition(n)
		e.version(n)
		e.counts(n)
		e.labels(n)
		e.addresses(n)
	}
	for _, want := range e.seen.GPUNodes {
		if e.node(want) == nil {
			e.raise("node-not-registered", want, "the cluster has no node %s", want)
		}
	}
}

func (e *exam) node(name string) *corev1.Node {
	for i := range e.seen.Nodes {
		if e.seen.Nodes[i].Name == name {
			return &e.seen.Nodes[i]
		}
	}
	return nil
}

func ready(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func (e *exam) condition(n *corev1.Node) {
	why := "the kubelet has never reported"
	for _, c := range n.Status.Conditions {
		switch {
		case c.Type == corev1.NodeReady:
			why = strings.TrimSpace(c.Reason + ": " + c.Message)
		case c.Status == corev1.ConditionTrue && (c.Type == corev1.NodeDiskPressure || c.Type == corev1.NodeMemoryPressure || c.Type == corev1.NodePIDPressure):
			e.raise("node-pressure", n.Name, "%s: %s", c.Type, c.Message)
		}
	}
	if !ready(n) {
		e.raise("node-not-ready", n.Name, "%s", why)
	}
	if n.Spec.Unschedulable && len(kube.GPUResources(n.Status.Capacity)) > 0 {
		e.raise("node-cordoned", n.Name, "new pods are kept away from its %s", amount(kube.GPUResources(n.Status.Capacity)))
	}
}

func (e *exam) version(n *corev1.Node) {
	if have := n.Status.NodeInfo.KubeletVersion; have != "" && e.seen.Version != "" && have != e.seen.Version {
		e.raise("kubelet-version-skew", n.Name, "kubelet %s, API server %s", have, e.seen.Version)
	}
}

// counts: what the node has and what it gives out.
func (e *exam) counts(n *corev1.Node) {
	capacity, allocatable := kube.GPUResources(n.Status.Capacity), kube.GPUResources(n.Status.Allocatable)
	total, offered := int64(0), int64(0)
	for _, resource := range sorted(capacity) {
		total += capacity[resource]
		offered += allocatable[resource]
	}
	// For some minutes a kubelet still counts what a device plugin that is gone had.
	bare := offered == 0 && !labelled(n) && len(e.seen.Policies) > 0 && slices.Contains(e.seen.GPUNodes, n.Name)
	for _, resource := range sorted(capacity) {
		if allocatable[resource] < capacity[resource] && !bare {
			e.raise("gpu-unhealthy", n.Name, "%d of %d %s are allocatable", allocatable[resource], capacity[resource], resource)
		}
	}
	switch {
	case bare:
		e.raise("nfd-labels-missing", n.Name, "the machine has GPUs, the node no label feature.node.kubernetes.io/pci-10de.present")
	case total > 0 || !slices.Contains(e.seen.GPUNodes, n.Name):
	case n.Labels[labelMIGCapable] == "true" && n.Labels[labelMIGState] == "success":
		e.raise("mig-empty", n.Name, "MIG is configured (%s) and the node offers no instance", n.Labels["nvidia.com/mig.config"])
	case labelled(n):
		e.raise("smoke-nothing-allocatable", n.Name, "the node has GPUs and offers none")
	}
}

// labelled: the labels by which the operator knows a node with GPUs.
func labelled(n *corev1.Node) bool {
	for _, l := range []string{"pci-10de", "pci-0302_10de", "pci-0300_10de"} {
		if n.Labels["feature.node.kubernetes.io/"+l+".present"] == "true" {
			return true
		}
	}
	return n.Labels["nvidia.com/gpu.present"] == "true"
}

func (e *exam) labels(n *corev1.Node) {
	if n.Labels[labelMIGState] == "failed" {
		e.raise("mig-config-failed", n.Name, "%s=failed for %s", labelMIGState, n.Labels["nvidia.com/mig.config"])
	}
	upgrade := n.Labels[labelUpgrade]
	if upgrade == "upgrade-failed" {
		e.raise("driver-upgrade-stuck", n.Name, "%s=%s", labelUpgrade, upgrade)
	}
	var paused []string
	for key, value := range n.Labels {
		if strings.HasPrefix(key, labelDeploy) && value == pausedValue {
			paused = append(paused, strings.TrimPrefix(key, labelDeploy))
		}
	}
	if slices.Sort(paused); len(paused) > 0 && (upgrade == "" || upgrade == "upgrade-done") {
		e.raise("operator-driver-paused", n.Name, "%s wait for a driver upgrade that is not going on", strings.Join(paused, ", "))
	}
}

// addresses: flannel uses the address it wrote on the node.
func (e *exam) addresses(n *corev1.Node) {
	used := n.Annotations[flannelPublicIP]
	if used == "" {
		return
	}
	var own []string
	for _, a := range n.Status.Addresses {
		if a.Address == used {
			return
		}
		if a.Type == corev1.NodeInternalIP {
			own = append(own, a.Address)
		}
	}
	e.raise("overlay-wrong-interface", n.Name, "flannel uses %s, the node's address is %s", used, strings.Join(own, ", "))
}
