package kube

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestRestartPodsOfOneNode(t *testing.T) {
	pod := func(name, app, node string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "gpu-operator", Name: name, Labels: map[string]string{"app": app}},
			Spec:       corev1.PodSpec{NodeName: node},
		}
	}
	set := fake.NewClientset(pod("p1", "plugin", "gpu-1"), pod("p2", "plugin", "gpu-2"), pod("d1", "discovery", "gpu-1"), pod("o1", "other", "gpu-1"))
	if err := New(set, nil).RestartPods(t.Context(), "gpu-operator", "gpu-1", "plugin", "discovery", "absent"); err != nil {
		t.Fatal(err)
	}
	list, err := set.CoreV1().Pods("gpu-operator").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 2 || list.Items[0].Name != "o1" || list.Items[1].Name != "p2" {
		t.Errorf("left are %+v, %v; want o1 and p2", list.Items, err)
	}
}
