package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// leases is the namespace in which kubelets renew the lease of their node,
// every 10 seconds (https://kubernetes.io/docs/reference/node/node-status/).
const leases = "kube-node-lease"

// Clock is the cluster's own time, late by some seconds: the last sign of life
// of a server's kubelet. The time of the computer that asks may be hours off,
// and ages of conditions must not be taken by it.
func (c *Client) Clock(ctx context.Context, s State) (time.Time, error) {
	list, err := c.set.CoordinationV1().Leases(leases).List(ctx, metav1.ListOptions{})
	if err != nil {
		return time.Time{}, fmt.Errorf("reading the cluster's time: %w", err)
	}
	var now time.Time
	for _, l := range list.Items {
		if n, ok := s.Node(l.Name); ok && n.Server && l.Spec.RenewTime != nil && l.Spec.RenewTime.After(now) {
			now = l.Spec.RenewTime.Time
		}
	}
	if now.IsZero() {
		return time.Time{}, errors.New("reading the cluster's time: no server renews its lease")
	}
	return now, nil
}

// Gone returns the nodes that have not been Ready for at least that long, at
// the cluster's time. Servers are never among them.
func (s State) Gone(now time.Time, after time.Duration) []Node {
	var out []Node
	for _, n := range s.Nodes {
		if !n.Server && !n.Ready && now.Sub(n.Since) >= after {
			out = append(out, n)
		}
	}
	return out
}

// HasNodePassword says whether the server keeps a password for a node of that
// name, without which a machine of that name joins freely.
func (c *Client) HasNodePassword(ctx context.Context, node string) (bool, error) {
	_, err := c.set.CoreV1().Secrets(metav1.NamespaceSystem).Get(ctx, node+".node-password.k3s", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking for the node password of %s: %w", node, err)
	}
	return true, nil
}

// DeletePodsOn deletes the pods of a namespace that are bound to a node, at
// once: for a node whose kubelet does not know them any more. The error is that
// of the API; pods that are gone already are none.
func (c *Client) DeletePodsOn(ctx context.Context, node, namespace string) error {
	list, err := c.set.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	if err != nil {
		return fmt.Errorf("listing the pods of %s in %s: %w", node, namespace, err)
	}
	now := int64(0)
	for _, p := range list.Items {
		if p.Spec.NodeName != node {
			continue
		}
		err := c.set.CoreV1().Pods(namespace).Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &p.UID}})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("deleting pod %s/%s: %w", namespace, p.Name, err)
		}
	}
	return nil
}
