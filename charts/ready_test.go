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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// parts of a cluster whose operator is ready.
func operatorParts() (*appsv1.Deployment, *corev1.Node, *appsv1.DaemonSet, *unstructured.Unstructured) {
	operator := tinyRunning("gpu-operator")
	operator.Name, operator.Labels = "gpu-operator", map[string]string{"app.kubernetes.io/component": "gpu-operator"}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "gpu-1", Labels: map[string]string{"feature.node.kubernetes.io/pci-10de.present": "true"}}}
	plugin := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "gpu-operator", Name: "nvidia-device-plugin-daemonset"},
		Spec:   appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "plugin"}}},
		Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 1, UpdatedNumberScheduled: 1, NumberReady: 1}}
	policy := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": map[string]any{"name": "cluster-policy"},
		"status": map[string]any{"state": "ready", "conditions": []any{
			map[string]any{"type": "Ready", "status": "True", "reason": "Reconciled", "message": ""}}}}}
	return operator, node, plugin, policy
}

func TestWaitOperatorReady(t *testing.T) {
	type parts struct {
		operator *appsv1.Deployment
		node     *corev1.Node
		plugin   *appsv1.DaemonSet
		policy   *unstructured.Unstructured
		gpus     string
		more     []runtime.Object
	}
	tests := []struct {
		name, gate, reason string
		change             func(*parts)
	}{
		{"ready", "", "", func(*parts) {}},
		{"operator", "operator deployment", "0 of 1 ready", func(p *parts) { p.operator.Status.AvailableReplicas = 0 }},
		{"labels", "node labels", "no node feature discovery label yet on gpu-1", func(p *parts) { p.node.Labels = nil }},
		{"driver", "driver", "daemonset nvidia-driver-daemonset: 0 of 1 ready", func(p *parts) { p.plugin.Name, p.plugin.Status.NumberReady = "nvidia-driver-daemonset", 0 }},
		{"toolkit", "device plugin", "daemonset nvidia-container-toolkit-daemonset: 0 of 1 ready", func(p *parts) {
			p.plugin.Name, p.plugin.Status.NumberReady = "nvidia-container-toolkit-daemonset", 0
		}},
		{"plugin", "device plugin", "daemonset nvidia-device-plugin-daemonset: 0 of 1 ready", func(p *parts) { p.plugin.Status.NumberReady = 0 }},
		{"exporter", "operands", "daemonset nvidia-dcgm-exporter: 0 of 1 ready", func(p *parts) {
			exporter := p.plugin.DeepCopy()
			exporter.Name, exporter.Status.NumberReady = "nvidia-dcgm-exporter", 0
			p.more = append(p.more, exporter)
		}},
		{"plugin nowhere", "device plugin", "not been placed on any node", func(p *parts) { p.plugin.Status = appsv1.DaemonSetStatus{} }},
		{"ready without labels proves nothing", "ClusterPolicy", "state is ready (NFDLabelsMissing: No NFD labels found)", func(p *parts) {
			p.policy.Object["status"] = map[string]any{"state": "ready", "conditions": []any{
				map[string]any{"type": "Ready", "status": "True", "reason": "NFDLabelsMissing", "message": "No NFD labels found"}}}
		}},
		{"error condition", "ClusterPolicy", "state is notReady (OperandNotReady: boom)", func(p *parts) {
			p.policy.Object["status"] = map[string]any{"state": "notReady", "conditions": []any{
				map[string]any{"type": "Ready", "status": "False", "reason": "Error"},
				map[string]any{"type": "Error", "status": "True", "reason": "OperandNotReady", "message": "boom"}}}
		}},
		{"no status yet", "ClusterPolicy", "state is not set", func(p *parts) { delete(p.policy.Object, "status") }},
		{"allocatable", "allocatable GPUs", "gpu-1 has 7 of 8", func(p *parts) { p.gpus = "gpu-1 has 7 of 8" }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := parts{}
			p.operator, p.node, p.plugin, p.policy = operatorParts()
			tt.change(&p)
			c := newCluster(t, append(p.more, p.operator, p.node, p.plugin)...)
			if _, err := c.dynamic.Resource(clusterPolicies()).Create(background(t), p.policy, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			short := 30 * time.Millisecond
			err := c.WaitOperatorReady(background(t), OperatorReady{Namespace: "gpu-operator", Nodes: []string{"gpu-1"}, NFD: true,
				Allocatable: func(context.Context) (bool, string, error) { return p.gpus == "", p.gpus, nil },
				Limits:      GateLimits{short, short, short, short, short, short, short}}, nil)
			if tt.gate == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			var wait *WaitError
			if !errors.As(err, &wait) || wait.What != tt.gate || !strings.Contains(wait.Reason, tt.reason) {
				t.Fatalf("got %v\nwant %s: ...%s...", err, tt.gate, tt.reason)
			}
		})
	}
}

func TestWaitLooksPastAnErrorAndKeepsIt(t *testing.T) {
	looks := 0
	err := wait(background(t), waitFor{"it", time.Minute, time.Millisecond}, nil, func(context.Context) (bool, string, error) {
		looks++
		if looks < 3 {
			return false, "", errors.New("connection refused")
		}
		return true, "", nil
	})
	if err != nil || looks != 3 {
		t.Errorf("got %v after %d looks", err, looks)
	}
	refused := errors.New("connection refused")
	err = wait(background(t), waitFor{"it", 10 * time.Millisecond, time.Millisecond}, nil, func(context.Context) (bool, string, error) {
		return false, "", refused
	})
	if !errors.Is(err, refused) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the last error is lost: %v", err)
	}
	looks = 0
	err = wait(background(t), waitFor{"it", 10 * time.Millisecond, time.Millisecond}, nil, func(context.Context) (bool, string, error) {
		if looks++; looks == 1 {
			return false, "", refused
		}
		return false, "", errors.New("client rate limiter Wait returned an error: rate: Wait(n=1) would exceed context deadline")
	})
	if !errors.Is(err, refused) || strings.Contains(err.Error(), "rate limiter") {
		t.Errorf("a look that was not tried is given as the reason: %v", err)
	}
}
