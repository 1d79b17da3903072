package kube

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestPluginConfigsAreThoseOfThePolicy(t *testing.T) {
	named := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "gpu-operator", Name: "time-slicing"}, Data: map[string]string{"any": "version: v1"}}
	other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "settings"}, Data: map[string]string{"password": "x"}}
	c, _ := client(policyWith("time-slicing"), named, other)
	got, err := c.PluginConfigs(context.Background())
	if err != nil || len(got) != 1 || got["gpu-operator/time-slicing key any"] != "version: v1" {
		t.Errorf("%v, %v", got, err)
	}
	c, _ = client(policyWith(""), named)
	if got, err := c.PluginConfigs(context.Background()); err != nil || len(got) != 0 {
		t.Errorf("a policy that names none: %v, %v", got, err)
	}
}

func policyWith(config string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": map[string]any{"name": "cluster-policy"}}}
	if config != "" {
		_ = unstructured.SetNestedField(u.Object, config, "spec", "devicePlugin", "config", "name")
	}
	return u
}
