package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/kube"
)

func pulling(namespace, name, node string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.PodSpec{NodeName: node}}
	p.Status = corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
		Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "m:5000/x: not found"}},
	}}}
	return p
}

// TestAWaitThatEndedNamesItsCause: the last reason says what is missing, the
// look at the cluster says why.
func TestAWaitThatEndedNamesItsCause(t *testing.T) {
	operator := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "gpu-operator", Name: "gpu-operator", Labels: map[string]string{"app.kubernetes.io/component": "gpu-operator"}}}
	operator.Status.AvailableReplicas = 1
	ended := &kube.WaitError{Limit: time.Minute, Reason: "node gpu-1 offers 0 of 2 nvidia.com/gpu", Err: context.DeadlineExceeded}
	for name, c := range map[string]struct {
		err  error
		pod  *corev1.Pod
		code diag.Code
		says string
	}{
		"an operand's image":       {ended, pulling("gpu-operator", "nvidia-device-plugin-daemonset-x", "gpu-1"), "smoke-image-pull", "nvidia-device-plugin-daemonset-x: container main: ErrImagePull"},
		"an image of another node": {ended, pulling("gpu-operator", "nvidia-device-plugin-daemonset-x", "gpu-2"), "smoke-nothing-allocatable", ""},
		"a user's image":           {ended, pulling("team-a", "llm", "gpu-1"), "smoke-nothing-allocatable", ""},
		"no wait":                  {errors.New("forbidden"), pulling("gpu-operator", "nvidia-device-plugin-daemonset-x", "gpu-1"), "", ""},
	} {
		e, _ := engineOf(t, unreachable, []string{"server", "gpu-1"}, []runtime.Object{operator, apiNode("server", true, 0), apiNode("gpu-1", true, 0), c.pod}...)
		err := e.want.diagnosed(t.Context(), e.api.client, "gpu-1", c.err)
		if !errors.Is(err, c.err) || diag.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(), c.err.Error()) {
			t.Errorf("%s: %s: %v", name, diag.CodeOf(err), err)
		}
	}
	if err := (wanted{}).diagnosed(t.Context(), nil, "", nil); err != nil {
		t.Errorf("no error became %v", err)
	}
}

func TestABlockedMachineEndsItsActionWithTheEntry(t *testing.T) {
	err := fmt.Errorf("observing again: %w", &BlockedError{Findings: []diag.Finding{diag.Found("gpu-lost", "gpu-1", "0000:18:00.0"), diag.Found("gpu-fewer", "gpu-1", "x")}})
	if p, ok := diag.Explain(err); !ok || p.Code != "gpu-lost" {
		t.Errorf("%+v", p)
	}
	if code := diag.CodeOf(&BlockedError{}); code != "" {
		t.Errorf("nothing blocks, and the code is %s", code)
	}
}
