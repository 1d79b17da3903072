package kube

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DrainOptions are the decisions that cost someone something.
type DrainOptions struct {
	// DeleteBare deletes pods without a controller: nobody brings them back.
	DeleteBare bool
	// DeleteLocalData evicts pods whose emptyDir volumes are lost.
	DeleteLocalData bool
	// GPUsOnly moves only pods that ask for nvidia.com resources: the others do not
	// feel what changes about the GPUs.
	GPUsOnly bool
	// Limit bounds the whole drain; 0 means 5 minutes.
	Limit time.Duration
	// Every is the time between two looks; 0 means 2 seconds.
	Every time.Duration
}

// Why a pod stands in the way of a drain.
const (
	NoController = "it has no controller: nothing would start it again"
	LocalData    = "it keeps data in an emptyDir that would be lost"
	Budget       = "its disruption budget allows no eviction"
	Terminating  = "it was asked to end and has not"
)

// Blocker is a pod that stands in the way of a drain.
type Blocker struct {
	Pod    string `json:"pod"` // namespace/name
	Reason string `json:"reason"`
}

// DrainError lists what stands in the way. The node stays cordoned.
type DrainError struct {
	Node     string
	Blockers []Blocker
}

func (e *DrainError) Error() string {
	var parts []string
	for _, b := range e.Blockers {
		parts = append(parts, b.Pod+" ("+b.Reason+")")
	}
	return fmt.Sprintf("draining %s: it stays cordoned; in the way: %s", e.Node, strings.Join(parts, ", "))
}

// DrainBlockers says which pods of a node a drain with these options would
// stop at, before it changes anything. Disruption budgets show only when
// evicting.
func (c *Client) DrainBlockers(ctx context.Context, node string, o DrainOptions) ([]Blocker, error) {
	pods, err := c.podsOn(ctx, node)
	if err != nil {
		return nil, err
	}
	return blockers(o.of(pods), o), nil
}

// Drain cordons a node and evicts its pods, respecting disruption budgets.
// DaemonSet and static pods stay; gpuctl's own test pods are deleted without
// asking. When something is in the way from the start nothing is evicted.
func (c *Client) Drain(ctx context.Context, node string, o DrainOptions, say func(format string, args ...any)) error {
	if o.Limit == 0 {
		o.Limit = 5 * time.Minute
	}
	if o.Every == 0 {
		o.Every = 2 * time.Second
	}
	if err := c.Cordon(ctx, node, true); err != nil {
		return err
	}
	pods, err := c.podsOn(ctx, node)
	if err != nil {
		return fmt.Errorf("draining %s: %w", node, err)
	}
	if in := blockers(o.of(pods), o); len(in) > 0 {
		return &DrainError{node, in}
	}
	var left []Blocker
	err = Wait(ctx, o.Every, o.Limit, func(ctx context.Context) (bool, string, error) {
		left, err = c.evictAll(ctx, node, o)
		var names []string
		for _, b := range left {
			names = append(names, b.Pod)
		}
		return len(left) == 0, fmt.Sprintf("draining %s: %d pods left: %s", node, len(left), strings.Join(names, ", ")), err
	}, say)
	var late *WaitError
	if errors.As(err, &late) {
		return &DrainError{node, left}
	}
	return err
}

// evictAll asks every movable pod to go and returns those that are still there.
func (c *Client) evictAll(ctx context.Context, node string, o DrainOptions) ([]Blocker, error) {
	pods, err := c.podsOn(ctx, node)
	if err != nil {
		return nil, err
	}
	pods = o.of(pods)
	var left []Blocker
	for i := range pods {
		p := &pods[i]
		reason := Terminating
		if p.DeletionTimestamp == nil {
			err := c.evict(ctx, p)
			switch {
			case apierrors.IsNotFound(err):
				continue
			case apierrors.IsTooManyRequests(err):
				reason = Budget
			case err != nil:
				return left, fmt.Errorf("evicting %s/%s: %w", p.Namespace, p.Name, err)
			}
		}
		left = append(left, Blocker{p.Namespace + "/" + p.Name, reason})
	}
	return left, nil
}

func (c *Client) evict(ctx context.Context, p *corev1.Pod) error {
	if own(p) {
		return c.set.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{})
	}
	return c.set.CoreV1().Pods(p.Namespace).EvictV1(ctx, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &p.UID}},
	})
}

// podsOn lists the pods of a node that a drain moves.
func (c *Client) podsOn(ctx context.Context, node string) ([]corev1.Pod, error) {
	list, err := c.set.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	if err != nil {
		return nil, err
	}
	var out []corev1.Pod
	for _, p := range list.Items {
		_, static := p.Annotations[corev1.MirrorPodAnnotationKey]
		owner := metav1.GetControllerOf(&p)
		if p.Spec.NodeName != node || static || ended(&p) || (owner != nil && owner.Kind == "DaemonSet") {
			continue
		}
		out = append(out, p)
	}
	sort.Slice(out, func(i, j int) bool {
		return out[i].Namespace+"/"+out[i].Name < out[j].Namespace+"/"+out[j].Name
	})
	return out, nil
}

// of keeps the pods that a drain with these options moves.
func (o DrainOptions) of(pods []corev1.Pod) []corev1.Pod {
	if !o.GPUsOnly {
		return pods
	}
	var out []corev1.Pod
	for _, p := range pods {
		if len(requests(&p.Spec)) > 0 {
			out = append(out, p)
		}
	}
	return out
}

func blockers(pods []corev1.Pod, o DrainOptions) []Blocker {
	var out []Blocker
	for i := range pods {
		p := &pods[i]
		name := p.Namespace + "/" + p.Name
		switch {
		case own(p):
		case metav1.GetControllerOf(p) == nil && !o.DeleteBare:
			out = append(out, Blocker{name, NoController})
		case hasLocalData(p) && !o.DeleteLocalData:
			out = append(out, Blocker{name, LocalData})
		}
	}
	return out
}

// own reports whether gpuctl made the pod, to test the node.
func own(p *corev1.Pod) bool { return p.Labels["app.kubernetes.io/managed-by"] == "gpuctl" }

// hasLocalData reports whether a pod has an emptyDir. In kube-system those are scratch space.
func hasLocalData(p *corev1.Pod) bool {
	if p.Namespace == metav1.NamespaceSystem {
		return false
	}
	for _, v := range p.Spec.Volumes {
		if v.EmptyDir != nil && v.EmptyDir.Medium != corev1.StorageMediumMemory {
			return true
		}
	}
	return false
}
