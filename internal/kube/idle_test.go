package kube

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
)

func TestLastGPUEnds(t *testing.T) {
	noon := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	pod := func(name, node string, phase corev1.PodPhase, gpus int64, end time.Time) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main"}}},
			Status: corev1.PodStatus{Phase: phase, ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(end)}}}}}}
		if gpus > 0 {
			p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(gpus, resource.DecimalSI)}
		}
		return p
	}
	set := fake.NewClientset(
		pod("early", "a", corev1.PodSucceeded, 1, noon), pod("late", "a", corev1.PodFailed, 2, noon.Add(time.Hour)),
		pod("no-gpu", "b", corev1.PodSucceeded, 0, noon), pod("runs", "c", corev1.PodRunning, 1, noon),
	)
	got, err := New(set, dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())).LastGPUEnds(t.Context())
	if err != nil || len(got) != 1 || !got["a"].Equal(noon.Add(time.Hour)) {
		t.Errorf("%v, %v", got, err)
	}
}
