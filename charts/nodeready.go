package charts

import (
	"context"
	"fmt"
	"sort"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuctl/gpuctl/internal/smoke/podreason"
)

// NodeReady is what has to be there before one node's GPUs can be tested.
type NodeReady struct {
	// Namespace is the operator's; empty leaves only the gate of the allocatable GPUs,
	// for a device plugin without operator.
	Namespace string
	// Node is its name.
	Node string
	// Allocatable says whether the node offers the GPUs as planned, and if not why.
	Allocatable func(context.Context) (done bool, reason string, err error)
	// Limits bound the gates; a zero field means its default. Operands and Policy
	// are of the whole cluster and not looked at.
	Limits GateLimits
}

// NodeGatesLimit is the longest that WaitNodeReady can take with its default limits.
const NodeGatesLimit = 46 * time.Minute

// WaitNodeReady waits gate by gate until a node offers its GPUs: the operator's
// deployment, the node's labels, the driver where the operator brings it, the
// device plugin with the toolkit before it, the allocatable GPUs. Other nodes do
// not matter. Each gate has its own limit, and a *WaitError names the gate and the
// reason that kept it shut. A node that offers its GPUs has passed all of them.
func (r *Releaser) WaitNodeReady(ctx context.Context, o NodeReady, say Say) error {
	c, err := r.clients()
	if err != nil {
		return err
	}
	l := o.Limits
	gates := []struct {
		name    string
		limit   waitFor
		cluster bool
		look    func(context.Context) (bool, string, error)
	}{
		{"operator deployment", waitFor{limit: limitOr(l.Deployment, 5)}, true, func(ctx context.Context) (bool, string, error) {
			return operatorDeployed(ctx, c.kube, o.Namespace)
		}},
		{"node labels", waitFor{limit: limitOr(l.Labels, 3)}, true, func(ctx context.Context) (bool, string, error) {
			return labelled(ctx, c.kube, []string{o.Node})
		}},
		{"driver", waitFor{limit: limitOr(l.Driver, 20)}, true, func(ctx context.Context) (bool, string, error) {
			return operandsOn(ctx, c.kube, o.Namespace, o.Node, placeDriver)
		}},
		{"device plugin", waitFor{limit: limitOr(l.Plugin, 15)}, true, func(ctx context.Context) (bool, string, error) {
			return operandsOn(ctx, c.kube, o.Namespace, o.Node, placeToolkit, placePlugin)
		}},
		{"allocatable GPUs", waitFor{limit: limitOr(l.Allocatable, 3)}, false, nil},
	}
	for _, g := range gates {
		if g.cluster && o.Namespace == "" {
			continue
		}
		g.limit.what, g.limit.every = g.name, r.every
		if err := wait(ctx, g.limit, say, unless(o.Allocatable, g.look)); err != nil {
			return err
		}
	}
	return nil
}

// unless opens a gate also where the last one is open already.
func unless(last, look func(context.Context) (bool, string, error)) func(context.Context) (bool, string, error) {
	return func(ctx context.Context) (bool, string, error) {
		done, why, err := last(ctx)
		if done && err == nil || look == nil {
			return done, why, err
		}
		return look(ctx)
	}
}

// operandsOn: the pods that daemonsets of these places want on a node are ready.
// One of the device plugin's place has to want one.
func operandsOn(ctx context.Context, kube kubernetes.Interface, namespace, name string, places ...int) (bool, string, error) {
	node, err := kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return false, "", err
	}
	list, err := kube.AppsV1().DaemonSets(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, "", err
	}
	pods, err := kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + name})
	if err != nil {
		return false, "", err
	}
	sort.SliceStable(list.Items, func(i, j int) bool { return placeOf(list.Items[i].Name) < placeOf(list.Items[j].Name) })
	wantsPlugin, plugin := false, false
	for _, place := range places {
		wantsPlugin = wantsPlugin || place == placePlugin
		for i := range list.Items {
			d := &list.Items[i]
			if placeOf(d.Name) != place || !wanted(d, node) {
				continue
			}
			plugin = plugin || place == placePlugin
			if why := podOf(ctx, kube, d, pods.Items, name); why != "" {
				return false, "daemonset " + d.Name + ": " + why, nil
			}
		}
	}
	if wantsPlugin && !plugin {
		return false, "the device plugin has not been placed on " + name, nil
	}
	return true, "", nil
}

// wanted says whether a daemonset's node selector chooses a node. The operator
// places its operands by that alone; their tolerations let them on any.
func wanted(d *appsv1.DaemonSet, node *corev1.Node) bool {
	for key, value := range d.Spec.Template.Spec.NodeSelector {
		if node.Labels[key] != value {
			return false
		}
	}
	return true
}

// podOf is what is wrong with a daemonset's pod on a node, "" if it is ready.
func podOf(ctx context.Context, kube kubernetes.Interface, d *appsv1.DaemonSet, pods []corev1.Pod, node string) string {
	for _, p := range pods {
		if p.Spec.NodeName != node || !metav1.IsControlledBy(&p, d) || p.DeletionTimestamp != nil {
			continue
		}
		if podreason.Ready(p) {
			return ""
		}
		if why := podreason.Of(p, eventsOf(ctx, kube, p)); why != "" {
			return fmt.Sprintf("pod %s: %s", p.Name, why)
		}
		return fmt.Sprintf("pod %s is %s", p.Name, p.Status.Phase)
	}
	return "no pod on " + node + " yet"
}
