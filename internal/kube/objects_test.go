package kube

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestObjectsBringsThemAsTheyAre(t *testing.T) {
	event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "e"}, Reason: "FailedCreate"}
	c, _ := client(nil, gpuNode("gpu-1", 2), pod("a", "gpu-1", corev1.PodRunning, 1), pod("b", "gpu-1", corev1.PodFailed), event)
	o, err := c.Objects(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if len(o.Nodes) != 1 || len(o.Pods) != 2 || len(o.Events) != 1 || len(o.Policies) != 0 || o.Version == "" {
		t.Errorf("%+v", o)
	}
	if GPURequests(&o.Pods[0].Spec)["nvidia.com/gpu"] != 1 || GPUResources(o.Nodes[0].Status.Capacity)["nvidia.com/gpu"] != 2 {
		t.Error("GPUs are not counted")
	}
}
