package charts

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
)

// OperatorReady is what has to be there before the GPU Operator counts as ready.
type OperatorReady struct {
	// Namespace is the operator's; empty skips the gates of its deployment and operands,
	// for an operator of which nothing but its ClusterPolicy is known.
	Namespace string
	// Nodes are the names of the nodes that have GPUs; none skips the gate of the operands.
	Nodes []string
	// NFD: wait for the labels of node feature discovery on the nodes.
	NFD bool
	// Allocatable says whether the nodes' allocatable GPUs are as planned, and if not why. Nil skips the gate.
	Allocatable func(context.Context) (done bool, reason string, err error)
	// Limits bound the gates; a zero field means its default.
	Limits GateLimits
}

// GateLimits bound the gates of WaitOperatorReady. Each gate pulls its own
// images, so each has its own time.
type GateLimits struct {
	// Deployment: 5 minutes. Labels: 3. Driver: 20, where the operator brings it
	// (an image of over a GB that may compile). Plugin: 15 (images of several
	// hundred MB). Operands: 10. Policy: 5. Allocatable: 3.
	Deployment, Labels, Driver, Plugin, Operands, Policy, Allocatable time.Duration
}

func clusterPolicies() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "nvidia.com", Version: "v1", Resource: "clusterpolicies"}
}

// WaitOperatorReady waits gate by gate: the operator's deployment, the labels of
// node feature discovery, the operator's own driver where it brings one, the
// device plugin, the other operands, the ClusterPolicy, the allocatable GPUs.
// A *WaitError names the gate and the reason that kept it shut. State ready of the
// ClusterPolicy alone proves nothing: without labels the operator is ready with
// reason NFDLabelsMissing and no GPU anywhere.
func (r *Releaser) WaitOperatorReady(ctx context.Context, o OperatorReady, say Say) error {
	c, err := r.clients()
	if err != nil {
		return err
	}
	l := o.Limits
	gates := []struct {
		skip bool
		waitFor
		look func(context.Context) (bool, string, error)
	}{
		{o.Namespace == "", waitFor{"operator deployment", limitOr(l.Deployment, 5), r.every}, func(ctx context.Context) (bool, string, error) {
			return operatorDeployed(ctx, c.kube, o.Namespace)
		}},
		{!o.NFD, waitFor{"node labels", limitOr(l.Labels, 3), r.every}, func(ctx context.Context) (bool, string, error) {
			return labelled(ctx, c.kube, o.Nodes)
		}},
		{len(o.Nodes) == 0, waitFor{"driver", limitOr(l.Driver, 20), r.every}, func(ctx context.Context) (bool, string, error) {
			return operandsReady(ctx, c.kube, o.Namespace, placeDriver)
		}},
		{len(o.Nodes) == 0, waitFor{"device plugin", limitOr(l.Plugin, 15), r.every}, func(ctx context.Context) (bool, string, error) {
			return operandsReady(ctx, c.kube, o.Namespace, placePlugin)
		}},
		{len(o.Nodes) == 0, waitFor{"operands", limitOr(l.Operands, 10), r.every}, func(ctx context.Context) (bool, string, error) {
			return operandsReady(ctx, c.kube, o.Namespace, placeRest)
		}},
		{false, waitFor{"ClusterPolicy", limitOr(l.Policy, 5), r.every}, func(ctx context.Context) (bool, string, error) {
			return policyReady(ctx, c)
		}},
		{o.Allocatable == nil, waitFor{"allocatable GPUs", limitOr(l.Allocatable, 3), r.every}, o.Allocatable},
	}
	for _, g := range gates {
		if g.skip {
			continue
		}
		if err := wait(ctx, g.waitFor, say, g.look); err != nil {
			return err
		}
	}
	return nil
}

func limitOr(limit time.Duration, minutes int) time.Duration {
	if limit > 0 {
		return limit
	}
	return time.Duration(minutes) * time.Minute
}

func operatorDeployed(ctx context.Context, kube kubernetes.Interface, namespace string) (bool, string, error) {
	list, err := kube.AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=gpu-operator"})
	if err != nil {
		return false, "", err
	}
	if len(list.Items) == 0 {
		return false, "no deployment in namespace " + namespace, nil
	}
	d := &list.Items[0]
	return judge(ctx, kube, namespace, "deployment "+d.Name, deploymentMissing(d), d.Spec.Selector)
}

// labelled waits for the label by which the operator knows a node with NVIDIA
// hardware. nodeHasGPU accepts those it and NFD write.
func labelled(ctx context.Context, kube kubernetes.Interface, names []string) (bool, string, error) {
	var bare []string
	for _, name := range names {
		node, err := kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		if !nodeHasGPU(node) {
			bare = append(bare, name)
		}
	}
	if len(bare) > 0 {
		return false, "no node feature discovery label yet on " + strings.Join(bare, ", "), nil
	}
	return true, "", nil
}

// nodeHasGPU: the labels of the operator's own detection (controllers/state_manager.go):
// vendor 10de as a display controller of either class, or without class.
func nodeHasGPU(node *corev1.Node) bool {
	for _, label := range []string{"pci-10de", "pci-0302_10de", "pci-0300_10de"} {
		if node.Labels["feature.node.kubernetes.io/"+label+".present"] == "true" {
			return true
		}
	}
	return node.Labels["nvidia.com/gpu.present"] == "true"
}

// Places of operands in the order in which they wait for each other.
const (
	placeDiscovery = iota
	placeDriver
	placeToolkit
	placeValidator
	placePlugin
	placeRest
)

// operandsReady: every daemonset up to a place that wants pods has them ready.
// From the device plugin's place on it has to be there, too.
func operandsReady(ctx context.Context, kube kubernetes.Interface, namespace string, last int) (bool, string, error) {
	list, err := kube.AppsV1().DaemonSets(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, "", err
	}
	sort.SliceStable(list.Items, func(i, j int) bool { return placeOf(list.Items[i].Name) < placeOf(list.Items[j].Name) })
	var plugin bool
	for i := range list.Items {
		d := &list.Items[i]
		if placeOf(d.Name) > last {
			break
		}
		plugin = plugin || placeOf(d.Name) == placePlugin && d.Status.DesiredNumberScheduled > 0
		done, why, err := judge(ctx, kube, namespace, "daemonset "+d.Name, daemonSetMissing(d), d.Spec.Selector)
		if err != nil || !done {
			return false, why, err
		}
	}
	if !plugin && last >= placePlugin {
		return false, "the device plugin has not been placed on any node", nil
	}
	return true, "", nil
}

// placeOf puts causes before effects: others wait in Init for the driver, the toolkit and the validator.
func placeOf(daemonSet string) int {
	for place, part := range []string{"node-feature-discovery", "nvidia-driver", "nvidia-container-toolkit", "nvidia-operator-validator", "nvidia-device-plugin-daemonset"} {
		if strings.Contains(daemonSet, part) {
			return place
		}
	}
	return placeRest
}

func policyReady(ctx context.Context, c *clients) (bool, string, error) {
	list, err := c.dynamic.Resource(clusterPolicies()).List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, "", err
	}
	if len(list.Items) == 0 {
		return false, "there is no ClusterPolicy", nil
	}
	policy := list.Items[0]
	status, _ := policy.Object["status"].(map[string]any)
	state, _ := status["state"].(string)
	ready, why := condition(&policy, "Ready")
	reason, _, _ := strings.Cut(why, ":")
	if state == "ready" && ready == "True" && reason == "Reconciled" {
		return true, "", nil
	}
	if broken, text := condition(&policy, "Error"); broken == "True" {
		why = text
	}
	if state == "" {
		state = "not set"
	}
	return false, fmt.Sprintf("state is %s (%s)", state, why), nil
}
