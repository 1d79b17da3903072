package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
)

func client(policy *unstructured.Unstructured, objects ...runtime.Object) (*Client, *fake.Clientset) {
	set := fake.NewClientset(objects...)
	var custom []runtime.Object
	if policy != nil {
		custom = append(custom, policy)
	}
	kinds := map[schema.GroupVersionResource]string{policies(): "ClusterPolicyList"}
	return New(set, dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, custom...)), set
}

func gpuNode(name string, gpus int64) *corev1.Node {
	list := corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(gpus, resource.DecimalSI), "cpu": resource.MustParse("8")}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"a": "b"}},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{
			{Key: "gpuctl.dev/unproven", Effect: corev1.TaintEffectNoSchedule}, {Key: "mine", Value: "x", Effect: corev1.TaintEffectNoExecute},
		}},
		Status: corev1.NodeStatus{
			Capacity: list, Allocatable: list,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.11"}},
			NodeInfo:   corev1.NodeSystemInfo{KubeletVersion: "v1.36.3+k3s1", ContainerRuntimeVersion: "containerd://2.3.7-k3s1"},
		},
	}
}

func gpuContainer(gpus int64) corev1.Container {
	return corev1.Container{Resources: corev1.ResourceRequirements{
		Limits: corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(gpus, resource.DecimalSI)},
	}}
}

func pod(name, node string, phase corev1.PodPhase, gpus ...int64) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "1"},
		Spec:       corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase},
	}
	for _, n := range gpus {
		p.Spec.Containers = append(p.Spec.Containers, gpuContainer(n))
	}
	return p
}

func TestSnapshot(t *testing.T) {
	policy := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": map[string]any{"name": "cluster-policy"},
		"status": map[string]any{"state": "ready", "conditions": []any{
			map[string]any{"type": "Ready", "status": "True", "reason": "Reconciled", "message": "all done"},
			map[string]any{"type": "Error", "status": "False", "reason": "Ready"},
		}},
	}}
	server := gpuNode("a-server", 0)
	server.Labels["node-role.kubernetes.io/control-plane"] = "true"
	server.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "KubeletNotReady", Message: "cni plugin not initialized"}}
	c, _ := client(policy, gpuNode("gpu-1", 8), server,
		pod("train", "gpu-1", corev1.PodRunning, 2, 1), pod("done", "gpu-1", corev1.PodSucceeded, 8),
		pod("cpu", "gpu-1", corev1.PodRunning, 0), pod("waiting", "", corev1.PodPending, 4))
	s, err := c.Snapshot(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if s.NoAPI != "" || len(s.Nodes) != 2 || len(s.Pods) != 2 || !s.Policy.Ready() {
		t.Fatalf("%+v", s)
	}
	a, _ := s.Node("a-server")
	n, _ := s.Node("gpu-1")
	if !a.Server || a.Ready || a.Reason != "KubeletNotReady: cni plugin not initialized" {
		t.Errorf("server: %+v", a)
	}
	if !n.Ready || n.InternalIP != "10.0.0.11" || n.Kubelet != "v1.36.3+k3s1" || !n.HasTaint("mine") || n.HasTaint("yours") {
		t.Errorf("node: %+v", n)
	}
	if got := fmt.Sprint(n.Allocatable, s.Requested("gpu-1"), s.Free("gpu-1")); got != "map[nvidia.com/gpu:8] map[nvidia.com/gpu:3] map[nvidia.com/gpu:5]" {
		t.Errorf("accounting %s", got)
	}
}

func TestSnapshotWithoutAPI(t *testing.T) {
	c, set := client(nil)
	refuse := func(err error) {
		set.PrependReactor("list", "nodes", func(ktesting.Action) (bool, runtime.Object, error) { return true, nil, err })
	}
	refuse(&net.OpError{Op: "dial", Err: errors.New("connection refused")})
	if s, err := c.Snapshot(context.Background()); err != nil || !strings.Contains(s.NoAPI, "connection refused") {
		t.Errorf("refused: %+v %v", s, err)
	}
	refuse(apierrors.NewServiceUnavailable("apiserver not ready"))
	if s, err := c.Snapshot(context.Background()); err != nil || s.NoAPI == "" {
		t.Errorf("503: %+v %v", s, err)
	}
	refuse(apierrors.NewUnauthorized("no"))
	if _, err := c.Snapshot(context.Background()); !apierrors.IsUnauthorized(err) {
		t.Errorf("401: %v", err)
	}
}

func TestRequests(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	sidecar := gpuContainer(1)
	sidecar.RestartPolicy = &always
	for name, c := range map[string]struct {
		init, containers []corev1.Container
		want             int64
	}{
		"sum":                  {nil, []corev1.Container{gpuContainer(1), gpuContainer(2)}, 3},
		"larger init":          {[]corev1.Container{gpuContainer(5)}, []corev1.Container{gpuContainer(2)}, 5},
		"sidecar":              {[]corev1.Container{sidecar}, []corev1.Container{gpuContainer(2)}, 3},
		"init after a sidecar": {[]corev1.Container{sidecar, gpuContainer(4)}, []corev1.Container{gpuContainer(2)}, 5},
		"init before":          {[]corev1.Container{gpuContainer(4), sidecar}, []corev1.Container{gpuContainer(2)}, 4},
		"none":                 {nil, []corev1.Container{{}}, 0},
	} {
		got := requests(&corev1.PodSpec{InitContainers: c.init, Containers: c.containers})
		if got["nvidia.com/gpu"] != c.want || (c.want == 0) != (len(got) == 0) {
			t.Errorf("%s: %v, want %d", name, got, c.want)
		}
	}
}

func TestPolicyWhy(t *testing.T) {
	if got := (Policy{}).Why(); got != "there is no ClusterPolicy yet" {
		t.Error(got)
	}
	p := policyOf(&unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"state": "notReady", "conditions": []any{
		map[string]any{"type": "Ready", "status": "False", "reason": "Error"},
		map[string]any{"type": "Error", "status": "True", "reason": "OperandNotReady", "message": "state-device-plugin is not ready"},
	}}}})
	if got := p.Why(); p.Ready() || got != "ClusterPolicy is notReady (OperandNotReady): state-device-plugin is not ready" {
		t.Error(got)
	}
	if (Policy{State: "ready", Reason: "NoGPUNodes"}).Ready() {
		t.Error("ready without GPUs counts")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
