package podreason

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestOf(t *testing.T) {
	waiting := func(reason, message string) corev1.Pod {
		return corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
			Name: "smoke", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}}}
	}
	event := func(kind, reason, message string, at int64) corev1.Event {
		return corev1.Event{Type: kind, Reason: reason, Message: message, LastTimestamp: metav1.NewTime(time.Unix(at, 0))}
	}
	unschedulable := corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable",
		Message: "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."}}}}
	tests := []struct {
		name   string
		pod    corev1.Pod
		events []corev1.Event
		want   string
	}{
		{"nothing wrong", waiting("ContainerCreating", ""), nil, ""},
		{"image", waiting("ImagePullBackOff", "Back-off pulling image \"x\""), nil, `container smoke: ImagePullBackOff: Back-off pulling image "x"`},
		{"not placed", unschedulable, nil, "Unschedulable: 0/2 nodes are available: 2 Insufficient nvidia.com/gpu."},
		{"refused by the kubelet", corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "UnexpectedAdmissionError",
			Message: "Allocate failed due to\n rpc error"}}, nil, "UnexpectedAdmissionError: Allocate failed due to rpc error"},
		{"sandbox, known by the newest warning only", waiting("ContainerCreating", ""), []corev1.Event{
			event("Warning", "FailedCreatePodSandBox", "no runtime for \"nvidia\" is configured", 20),
			event("Normal", "Pulling", "pulling", 30),
			event("Warning", "Older", "older", 10)}, `FailedCreatePodSandBox: no runtime for "nvidia" is configured`},
		{"ended", corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "smoke",
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error"}}}}}}, nil,
			"container smoke: exit 3: Error"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Of(tt.pod, tt.events); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
	if got := Of(waiting("CreateContainerError", strings.Repeat("x", 9000)), nil); len(got) > limit+8 {
		t.Errorf("a long message was not cut: %d bytes", len(got))
	}
}

func TestReady(t *testing.T) {
	ready := corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
	if !Ready(ready) {
		t.Error("a ready pod was called not ready")
	}
	now := metav1.Now()
	ready.DeletionTimestamp = &now
	if Ready(ready) {
		t.Error("a pod that is going away was called ready")
	}
	if !Ready(corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodSucceeded}}) {
		t.Error("a pod that succeeded was called not ready")
	}
	if Ready(corev1.Pod{}) {
		t.Error("a pod without conditions was called ready")
	}
}
