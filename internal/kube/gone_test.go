package kube

import (
	"context"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestGoneGoesByTheClustersTime(t *testing.T) {
	at := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	lease := func(node string, renewed time.Time) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: leases, Name: node},
			Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: renewed}}}
	}
	s := State{Nodes: []Node{
		{Name: "server", Server: true, Since: at.Add(-time.Hour)}, // not Ready either: never reaped
		{Name: "ready", Ready: true, Since: at.Add(-time.Hour)},
		{Name: "long", Since: at.Add(-11 * time.Minute)},
		{Name: "short", Since: at.Add(-9 * time.Minute)},
	}}
	// An agent whose clock runs ahead must not make the others old.
	c, _ := client(nil, lease("server", at), lease("ready", at.Add(time.Hour)), lease("stranger", at.Add(time.Hour)))
	now, err := c.Clock(context.Background(), s)
	if err != nil || !now.Equal(at) {
		t.Fatalf("%v %v", now, err)
	}
	gone := s.Gone(now, 10*time.Minute)
	if len(gone) != 1 || gone[0].Name != "long" {
		t.Errorf("gone: %+v", gone)
	}
	c, _ = client(nil, lease("ready", at))
	if _, err := c.Clock(context.Background(), s); err == nil {
		t.Error("a time without a server's lease is believed")
	}
}

func TestHasNodePassword(t *testing.T) {
	c, _ := client(nil, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "gpu-1.node-password.k3s"}})
	for node, want := range map[string]bool{"gpu-1": true, "gpu-2": false} {
		if got, err := c.HasNodePassword(context.Background(), node); err != nil || got != want {
			t.Errorf("%s: %v %v", node, got, err)
		}
	}
}

func TestDeletePodsOnTakesThoseOfTheNodeAlone(t *testing.T) {
	other := pod("other-node", "gpu-2", corev1.PodRunning)
	elsewhere := pod("other-namespace", "gpu-1", corev1.PodRunning)
	elsewhere.Namespace = "team-a"
	c, set := client(nil, pod("old", "gpu-1", corev1.PodRunning), other, elsewhere)
	if err := c.DeletePodsOn(context.Background(), "gpu-1", "default"); err != nil {
		t.Fatal(err)
	}
	left, err := set.CoreV1().Pods("").List(context.Background(), metav1.ListOptions{})
	if err != nil || len(left.Items) != 2 {
		t.Errorf("%v: %d pods are left", err, len(left.Items))
	}
	for _, p := range left.Items {
		if p.Name == "old" {
			t.Error("the node's pod is left")
		}
	}
}
