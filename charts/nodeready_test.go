package charts

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// onNode is a daemonset of the operator and its pod on gpu-1; not ready for a reason.
func onNode(name, deploy, reason string) []runtime.Object {
	d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "gpu-operator", Name: name, UID: types.UID(name)}}
	d.Spec.Template.Spec.NodeSelector = map[string]string{"nvidia.com/gpu.deploy." + deploy: "true"}
	yes, ready := true, corev1.ConditionTrue
	if reason != "" {
		ready = corev1.ConditionFalse
	}
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "gpu-operator", Name: name + "-x", OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Name: name, UID: types.UID(name), Controller: &yes}}},
		Spec:       corev1.PodSpec{NodeName: "gpu-1"},
		Status:     corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
	}
	if reason != "" {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}}
	}
	return []runtime.Object{d, p}
}

// TestWaitNodeReady: each gate of a node shuts by itself and says why; what other
// nodes lack, or what the node is not to have, keeps none shut.
func TestWaitNodeReady(t *testing.T) {
	const driver, toolkit, plugin = "nvidia-driver-daemonset", "nvidia-container-toolkit-daemonset", "nvidia-device-plugin-daemonset"
	for name, c := range map[string]struct {
		// deploy are the operands that the node is to have.
		deploy           []string
		broken           map[string]string
		operator, labels bool
		namespace, gpus  string
		gate, reason     string
	}{
		"all is well":                    {deploy: []string{"driver", "plugin"}, operator: true, labels: true, namespace: "gpu-operator"},
		"the operator":                   {labels: true, namespace: "gpu-operator", gpus: "0 of 2", gate: "operator deployment", reason: "0 of 1 ready"},
		"the labels":                     {operator: true, namespace: "gpu-operator", gpus: "0 of 2", gate: "node labels", reason: "no node feature discovery label yet on gpu-1"},
		"the driver":                     {deploy: []string{"driver", "plugin"}, broken: map[string]string{driver: "CrashLoopBackOff"}, operator: true, labels: true, namespace: "gpu-operator", gpus: "0 of 2", gate: "driver", reason: "pod " + driver + "-x: container main: CrashLoopBackOff"},
		"a driver that is the machine's": {deploy: []string{"plugin"}, broken: map[string]string{driver: "CrashLoopBackOff"}, operator: true, labels: true, namespace: "gpu-operator", gpus: "1 of 2", gate: "allocatable GPUs", reason: "1 of 2"},
		"the toolkit":                    {deploy: []string{"toolkit", "plugin"}, broken: map[string]string{toolkit: "CreateContainerError"}, operator: true, labels: true, namespace: "gpu-operator", gpus: "0 of 2", gate: "device plugin", reason: toolkit},
		"the plugin":                     {deploy: []string{"plugin"}, broken: map[string]string{plugin: "ImagePullBackOff"}, operator: true, labels: true, namespace: "gpu-operator", gpus: "0 of 2", gate: "device plugin", reason: "ImagePullBackOff"},
		"no plugin for this node":        {operator: true, labels: true, namespace: "gpu-operator", gpus: "0 of 2", gate: "device plugin", reason: "has not been placed on gpu-1"},
		"no GPUs though all runs":        {deploy: []string{"plugin"}, operator: true, labels: true, namespace: "gpu-operator", gpus: "node gpu-1 offers 1 of 2 nvidia.com/gpu", gate: "allocatable GPUs", reason: "1 of 2"},
		"GPUs are there, whoever did it": {namespace: "gpu-operator"},
		"without an operator":            {gpus: "0 of 2", gate: "allocatable GPUs", reason: "0 of 2"},
	} {
		t.Run(name, func(t *testing.T) {
			operator, node, _, _ := operatorParts()
			if !c.operator {
				operator.Status.AvailableReplicas = 0
			}
			if !c.labels {
				node.Labels = map[string]string{}
			}
			for _, d := range c.deploy {
				node.Labels["nvidia.com/gpu.deploy."+d] = "true"
			}
			objects := []runtime.Object{operator, node}
			for ds, deploy := range map[string]string{driver: "driver", toolkit: "toolkit", plugin: "plugin"} {
				objects = append(objects, onNode(ds, deploy, c.broken[ds])...)
			}
			short := 30 * time.Millisecond
			err := newCluster(t, objects...).WaitNodeReady(background(t), NodeReady{Namespace: c.namespace, Node: "gpu-1",
				Allocatable: func(context.Context) (bool, string, error) { return c.gpus == "", c.gpus, nil },
				Limits:      GateLimits{Deployment: short, Labels: short, Driver: short, Plugin: short, Allocatable: short}}, nil)
			if c.gate == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			var wait *WaitError
			if !errors.As(err, &wait) || wait.What != c.gate || !strings.Contains(wait.Reason, c.reason) {
				t.Fatalf("got %v\nwant %s: ...%s...", err, c.gate, c.reason)
			}
		})
	}
}

// TestTheLimitOfTheGatesIsTheirSum: who calls WaitNodeReady has to leave it that long.
func TestTheLimitOfTheGatesIsTheirSum(t *testing.T) {
	var sum time.Duration
	for _, minutes := range []int{5, 3, 20, 15, 3} {
		sum += limitOr(0, minutes)
	}
	if sum != NodeGatesLimit {
		t.Errorf("the gates take %s together", sum)
	}
}
