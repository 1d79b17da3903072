package kube

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Operands names the operator's pods of some nodes that have to come to what its
// daemonsets are now.
type Operands struct {
	Namespace string
	Nodes     []string
	// Strategy is how the daemonsets must be updated by then, "OnDelete" or
	// "RollingUpdate": by that it shows that the operator has read its policy.
	Strategy string
	// Delete takes outdated pods away, which under OnDelete nobody else does.
	Delete bool
}

// OperandsCurrent waits until the operands of nodes are of the newest revision and
// Ready. The driver's daemonset is not one of them: the operator moves it by itself,
// node after node (its upgrade controller).
func (c *Client) OperandsCurrent(o Operands) Condition {
	return func(ctx context.Context) (bool, string, error) {
		sets, err := c.set.AppsV1().DaemonSets(o.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, "", fmt.Errorf("reading operands: %w", err)
		}
		revisions, err := c.set.AppsV1().ControllerRevisions(o.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, "", fmt.Errorf("reading operands: %w", err)
		}
		pods, err := c.set.CoreV1().Pods(o.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, "", fmt.Errorf("reading operands: %w", err)
		}
		for i := range sets.Items {
			set := &sets.Items[i]
			if !operand(set) {
				continue
			}
			if string(set.Spec.UpdateStrategy.Type) != o.Strategy || set.Status.ObservedGeneration < set.Generation {
				return false, "the operator has not come to " + set.Name + " yet", nil
			}
			for j := range pods.Items {
				p := &pods.Items[j]
				if !slices.Contains(o.Nodes, p.Spec.NodeName) || !metav1.IsControlledBy(p, set) {
					continue
				}
				if reason, err := c.current(ctx, p, newest(set, revisions.Items), o.Delete); reason != "" || err != nil {
					return false, reason, err
				}
			}
			if missing := set.Status.DesiredNumberScheduled - set.Status.CurrentNumberScheduled; missing > 0 {
				return false, fmt.Sprintf("%s has no pod yet on %d nodes", set.Name, missing), nil
			}
		}
		return true, "", nil
	}
}

// operand says whether a daemonset is the operator's, and not a driver's.
func operand(set *appsv1.DaemonSet) bool {
	owned := slices.ContainsFunc(set.OwnerReferences, func(r metav1.OwnerReference) bool { return r.Kind == "ClusterPolicy" })
	return owned && !strings.HasPrefix(set.Name, "nvidia-driver-daemonset")
}

// newest is the hash of a daemonset's newest revision, "" where none is known.
func newest(set *appsv1.DaemonSet, all []appsv1.ControllerRevision) string {
	hash, at := "", int64(-1)
	for i := range all {
		if r := &all[i]; metav1.IsControlledBy(r, set) && r.Revision > at {
			hash, at = r.Labels[appsv1.ControllerRevisionHashLabelKey], r.Revision
		}
	}
	return hash
}

// current says why a pod is not what its daemonset is now, "" where it is.
func (c *Client) current(ctx context.Context, p *corev1.Pod, hash string, remove bool) (string, error) {
	switch {
	case p.DeletionTimestamp != nil:
		return p.Name + " ends", nil
	case p.Labels[appsv1.ControllerRevisionHashLabelKey] != hash && remove:
		err := c.set.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return "", fmt.Errorf("replacing %s: %w", p.Name, err)
		}
		return p.Name + " ends", nil
	case p.Labels[appsv1.ControllerRevisionHashLabelKey] != hash:
		return p.Name + " on " + p.Spec.NodeName + " is outdated", nil
	}
	for _, cond := range p.Status.Conditions {
		if cond.Type == corev1.PodReady && cond.Status == corev1.ConditionTrue {
			return "", nil
		}
	}
	return p.Name + " on " + p.Spec.NodeName + " is not Ready: " + waiting(p), nil
}

// waiting is what a pod's containers wait for, its phase where they say nothing.
func waiting(p *corev1.Pod) string {
	for _, s := range append(slices.Clone(p.Status.InitContainerStatuses), p.Status.ContainerStatuses...) {
		if w := s.State.Waiting; w != nil && w.Reason != "PodInitializing" && w.Reason != "ContainerCreating" {
			return strings.TrimRight(w.Reason+": "+w.Message, ": ")
		}
	}
	return string(p.Status.Phase)
}
