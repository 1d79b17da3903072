package kube

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RestartPods deletes the pods of one node with one of these values of the label
// "app"; their daemonsets make new ones. None is no error.
func (c *Client) RestartPods(ctx context.Context, namespace, node string, apps ...string) error {
	for _, app := range apps {
		list, err := c.set.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{
			LabelSelector: "app=" + app, FieldSelector: "spec.nodeName=" + node,
		})
		if err != nil {
			return fmt.Errorf("restarting %s on %s: %w", app, node, err)
		}
		for i := range list.Items {
			p := &list.Items[i]
			if p.Spec.NodeName != node || p.DeletionTimestamp != nil {
				continue
			}
			if err := c.set.CoreV1().Pods(namespace).Delete(ctx, p.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("restarting %s on %s: %w", app, node, err)
			}
		}
	}
	return nil
}
