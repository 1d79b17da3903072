package kube

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
)

// Bounds of what is read of logs.
const (
	tailLines = 40
	tailBytes = 16 << 10
	tailPods  = 64
	tailLimit = 5 * time.Second
)

// Tails reads the ends of logs of pods that ask for GPUs, by namespace/name: of
// the container that asks, and of its last life where it waits for the next. A
// log that cannot be read is left out: the kubelet may be what is broken.
func (c *Client) Tails(ctx context.Context, pods []corev1.Pod) map[string]string {
	var mu sync.Mutex
	out := map[string]string{}
	var group errgroup.Group
	group.SetLimit(8)
	n := 0
	for i := range pods {
		p := &pods[i]
		container, previous := talker(p)
		if container == "" || n == tailPods {
			continue
		}
		n++
		group.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, tailLimit)
			defer cancel()
			lines, bytes := int64(tailLines), int64(tailBytes)
			text, err := c.set.CoreV1().Pods(p.Namespace).GetLogs(p.Name, &corev1.PodLogOptions{
				Container: container, Previous: previous, TailLines: &lines, LimitBytes: &bytes,
			}).DoRaw(ctx)
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				out[p.Namespace+"/"+p.Name] = string(text)
			}
			return nil
		})
	}
	_ = group.Wait() // no member fails
	return out
}

// talker is the container with GPUs of a pod that has run; previous says that
// its last life is over and the next has not begun.
func talker(p *corev1.Pod) (container string, previous bool) {
	if p.Spec.NodeName == "" || p.Status.Phase == corev1.PodSucceeded {
		return "", false
	}
	asks := map[string]bool{}
	for i := range p.Spec.Containers {
		asks[p.Spec.Containers[i].Name] = len(limits(&p.Spec.Containers[i])) > 0
	}
	for _, s := range p.Status.ContainerStatuses {
		switch {
		case !asks[s.Name]:
		case s.State.Running != nil, s.State.Terminated != nil:
			return s.Name, false
		case s.LastTerminationState.Terminated != nil:
			return s.Name, true
		}
	}
	return "", false
}
