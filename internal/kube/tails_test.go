package kube

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func talking(name, node string, states ...corev1.ContainerStatus) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name}, Spec: corev1.PodSpec{NodeName: node}}
	gpu := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
	p.Spec.Containers = []corev1.Container{{Name: "side"}, {Name: "train", Resources: corev1.ResourceRequirements{Limits: gpu}}}
	p.Status.ContainerStatuses = states
	return p
}

func TestTheContainerWithTheGPUTalks(t *testing.T) {
	runs := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	over := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}
	waits := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	side := corev1.ContainerStatus{Name: "side", State: runs}
	for name, c := range map[string]struct {
		pod       corev1.Pod
		container string
		previous  bool
	}{
		"not placed":        {talking("a", ""), "", false},
		"not started":       {talking("a", "gpu-1", side, corev1.ContainerStatus{Name: "train", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}}), "", false},
		"runs":              {talking("a", "gpu-1", side, corev1.ContainerStatus{Name: "train", State: runs}), "train", false},
		"ended":             {talking("a", "gpu-1", side, corev1.ContainerStatus{Name: "train", State: over}), "train", false},
		"between two lives": {talking("a", "gpu-1", side, corev1.ContainerStatus{Name: "train", State: waits, LastTerminationState: over}), "train", true},
	} {
		if container, previous := talker(&c.pod); container != c.container || previous != c.previous {
			t.Errorf("%s: %q %t", name, container, previous)
		}
	}
	pods := []corev1.Pod{talking("a", "gpu-1", corev1.ContainerStatus{Name: "train", State: runs}), talking("b", "")}
	got := New(fake.NewClientset(&pods[0], &pods[1]), nil).Tails(t.Context(), pods)
	if len(got) != 1 || got["team-a/a"] != "fake logs" {
		t.Errorf("%v", got)
	}
}
