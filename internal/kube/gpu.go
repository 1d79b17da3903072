package kube

import (
	"context"
	"sort"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// gpuPods lists pods that have not ended and ask for nvidia.com resources.
func (c *Client) gpuPods(ctx context.Context) ([]Pod, error) {
	list, err := c.set.CoreV1().Pods("").List(ctx, metav1.ListOptions{
		FieldSelector: "status.phase!=Succeeded,status.phase!=Failed",
	})
	if err != nil {
		return nil, err
	}
	var out []Pod
	for i := range list.Items {
		p := &list.Items[i]
		gpus := requests(&p.Spec)
		if ended(p) || len(gpus) == 0 {
			continue
		}
		out = append(out, Pod{
			Namespace: p.Namespace, Name: p.Name, Node: p.Spec.NodeName, Phase: string(p.Status.Phase), GPUs: gpus,
			Managed: p.Labels["app.kubernetes.io/managed-by"],
		})
	}
	sort.Slice(out, func(i, j int) bool {
		return out[i].Namespace+"/"+out[i].Name < out[j].Namespace+"/"+out[j].Name
	})
	return out, nil
}

func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// requests is what the scheduler counts for a pod: containers and sidecars add
// up; an init container counts with the sidecars started before it, when that
// is more (KEP-753).
func requests(spec *corev1.PodSpec) map[string]int64 {
	sum, sidecars, peak := map[string]int64{}, map[string]int64{}, map[string]int64{}
	for i := range spec.Containers {
		add(sum, limits(&spec.Containers[i]))
	}
	for i := range spec.InitContainers {
		init := &spec.InitContainers[i]
		need := limits(init)
		if init.RestartPolicy != nil && *init.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			add(sidecars, need)
			continue
		}
		for name, n := range need {
			peak[name] = max(peak[name], n+sidecars[name])
		}
	}
	add(sum, sidecars)
	for name, n := range peak {
		sum[name] = max(sum[name], n)
	}
	for name, n := range sum {
		if n == 0 {
			delete(sum, name)
		}
	}
	return sum
}

// limits takes requests and, where a pod names only limits, those: for
// extended resources the API server makes both equal.
func limits(c *corev1.Container) map[string]int64 {
	out := nvidia(c.Resources.Requests)
	for name, n := range nvidia(c.Resources.Limits) {
		if out == nil {
			out = map[string]int64{}
		}
		out[name] = max(out[name], n)
	}
	return out
}

func add(into, from map[string]int64) {
	for name, n := range from {
		into[name] += n
	}
}

// Requested sums what pods on a node ask for, by resource name.
func (s State) Requested(node string) map[string]int64 {
	out := map[string]int64{}
	for _, p := range s.Pods {
		if p.Node == node {
			add(out, p.GPUs)
		}
	}
	return out
}

// Free is allocatable minus requested, by resource name; never below 0. A pod
// that was there before GPUs vanished may ask for more than there is.
func (s State) Free(node string) map[string]int64 {
	out := map[string]int64{}
	n, _ := s.Node(node)
	requested := s.Requested(node)
	for name, have := range n.Allocatable {
		out[name] = max(0, have-requested[name])
	}
	return out
}
