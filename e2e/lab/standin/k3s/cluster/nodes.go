package cluster

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	cloudproviderapi "k8s.io/cloud-provider/api"
)

// Annotations that an agent puts on its Node.
const (
	AnnotationInternalIP = "k3s.io/internal-ip"
	AnnotationExternalIP = "k3s.io/external-ip"
	AnnotationHostname   = "k3s.io/hostname"
	// AnnotationEtcd is the name of a server's etcd member.
	AnnotationEtcd = "etcd.k3s.cattle.io/node-name"
)

// Initialise does for every Node what k3s's cloud controller and node
// controllers do: provider id, addresses, labels, the uninitialised taint, the
// owner of the password secret. It looks every half second until ctx ends.
func Initialise(ctx context.Context, c kubernetes.Interface) {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		nodes, err := c.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err == nil {
			for i := range nodes.Items {
				if err := initialise(ctx, c, &nodes.Items[i]); err != nil && ctx.Err() == nil {
					logrus.Warnf("Initialising node %s: %v", nodes.Items[i].Name, err)
				}
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func initialise(ctx context.Context, c kubernetes.Interface, n *corev1.Node) error {
	if want := addresses(n); want != nil && !slices.Equal(n.Status.Addresses, want) {
		if err := patch(ctx, c, n.Name, map[string]any{"status": map[string]any{"addresses": want}}, "status"); err != nil {
			return err
		}
	}
	if !uninitialised(n) {
		return nil
	}
	if err := OwnPassword(ctx, c, n); err != nil {
		return err
	}
	if addresses(n) == nil {
		return nil // the agent has not said yet what its addresses are
	}
	labels := map[string]string{}
	for _, name := range []string{corev1.LabelInstanceTypeStable, corev1.LabelInstanceType} {
		if n.Labels[name] == "" {
			labels[name] = "k3s"
		}
	}
	taints := slices.DeleteFunc(slices.Clone(n.Spec.Taints), isUninitialised)
	if taints == nil {
		taints = []corev1.Taint{}
	}
	return patch(ctx, c, n.Name, map[string]any{
		"metadata": map[string]any{"labels": labels},
		"spec":     map[string]any{"providerID": "k3s://" + n.Name, "taints": taints},
	})
}

func uninitialised(n *corev1.Node) bool { return slices.ContainsFunc(n.Spec.Taints, isUninitialised) }

func isUninitialised(t corev1.Taint) bool {
	return t.Key == cloudproviderapi.TaintExternalCloudProvider
}

// addresses are what a node's annotations say, nil before they are there.
func addresses(n *corev1.Node) []corev1.NodeAddress {
	internal := n.Annotations[AnnotationInternalIP]
	if internal == "" {
		return nil
	}
	var all []corev1.NodeAddress
	for ip := range strings.SplitSeq(internal, ",") {
		all = append(all, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip})
	}
	if external := n.Annotations[AnnotationExternalIP]; external != "" {
		for ip := range strings.SplitSeq(external, ",") {
			all = append(all, corev1.NodeAddress{Type: corev1.NodeExternalIP, Address: ip})
		}
	}
	return append(all, corev1.NodeAddress{Type: corev1.NodeHostName, Address: n.Annotations[AnnotationHostname]})
}

// LabelServer marks the Node of a server. It waits until the Node is there.
func LabelServer(ctx context.Context, c kubernetes.Interface, node string, etcd bool) error {
	labels := map[string]string{"node-role.kubernetes.io/control-plane": "true"}
	if etcd {
		labels["node-role.kubernetes.io/etcd"] = "true"
	}
	n, err := WaitNode(ctx, c, node, func(*corev1.Node) bool { return true })
	if err != nil {
		return err
	}
	if maps.Equal(n.Labels, merged(n.Labels, labels)) {
		return nil
	}
	if err := patch(ctx, c, node, map[string]any{"metadata": map[string]any{"labels": labels}}); err != nil {
		return err
	}
	logrus.Infof("Labels and annotations have been set successfully on node: %s", node)
	return nil
}

// EtcdNodes are the members of etcd by the name of their node, as the annotations of nodes say.
func EtcdNodes(ctx context.Context, c kubernetes.Interface) (map[string]string, error) {
	nodes, err := c.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, n := range nodes.Items {
		if member := n.Annotations[AnnotationEtcd]; member != "" {
			all[n.Name] = member
		}
	}
	return all, nil
}

// Voter says on a Node that its etcd is a voting member.
func Voter(ctx context.Context, c kubernetes.Interface, node string) error {
	now := metav1.Now()
	body, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []corev1.NodeCondition{{
		Type: "EtcdIsVoter", Status: corev1.ConditionTrue, Reason: "MemberNotLearner",
		Message: "Node is a voting member of the etcd cluster", LastHeartbeatTime: now, LastTransitionTime: now,
	}}}})
	if err != nil {
		return err
	}
	_, err = c.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType, body, metav1.PatchOptions{}, "status")
	return err
}

// Annotate sets annotations and labels on a Node.
func Annotate(ctx context.Context, c kubernetes.Interface, node string, annotations, labels map[string]string) error {
	metadata := map[string]any{"annotations": annotations}
	if labels != nil { // null would take all labels away
		metadata["labels"] = labels
	}
	return patch(ctx, c, node, map[string]any{"metadata": metadata})
}

// WaitNode waits until the Node is there and ready says so.
func WaitNode(ctx context.Context, c kubernetes.Interface, name string, ready func(*corev1.Node) bool) (*corev1.Node, error) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		n, err := c.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err == nil && ready(n) {
			return n, nil
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-tick.C:
		}
	}
}

func merged(a, b map[string]string) map[string]string {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

func patch(ctx context.Context, c kubernetes.Interface, node string, change any, sub ...string) error {
	body, err := json.Marshal(change)
	if err != nil {
		return err
	}
	_, err = c.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, body, metav1.PatchOptions{}, sub...)
	return err
}
