package kube

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LastGPUEnds says for each node when the last pod with GPUs ended there, as far
// as the API still shows that pod: ended pods are deleted sooner or later, and a
// node that is missing here may have worked all the same.
func (c *Client) LastGPUEnds(ctx context.Context) (map[string]time.Time, error) {
	list, err := c.set.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "status.phase!=Running,status.phase!=Pending"})
	if err != nil {
		return nil, err
	}
	out := map[string]time.Time{}
	for i := range list.Items {
		p := &list.Items[i]
		if !ended(p) || p.Spec.NodeName == "" || len(requests(&p.Spec)) == 0 {
			continue
		}
		if at := endOf(p); at.After(out[p.Spec.NodeName]) {
			out[p.Spec.NodeName] = at
		}
	}
	return out, nil
}

// endOf is when the last container of a pod ended; the zero time if none says.
func endOf(p *corev1.Pod) time.Time {
	var last time.Time
	for _, s := range p.Status.ContainerStatuses {
		if t := s.State.Terminated; t != nil && t.FinishedAt.After(last) {
			last = t.FinishedAt.Time
		}
	}
	return last
}
