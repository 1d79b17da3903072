package kube

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ktesting "k8s.io/client-go/testing"
)

// drainPods are the pods of NVIDIA/gpu-operator#367, put together with those of the other reports.
func drainPods() []runtime.Object {
	yes := true
	make := func(namespace, name, owner string, local bool) *corev1.Pod {
		p := pod(name, "gpu-1", corev1.PodRunning)
		p.Namespace = namespace
		if owner != "" {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: owner, Name: "o", Controller: &yes}}
		}
		if local {
			p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		}
		return p
	}
	smoke := make("gpuctl", "smoke", "", false)
	smoke.Labels = map[string]string{"app.kubernetes.io/managed-by": "gpuctl"}
	static := make("kube-system", "static", "", false)
	static.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	return []runtime.Object{
		gpuNode("gpu-1", 8), smoke, static,
		make("gpu-operator", "nvidia-device-plugin-daemonset-aaaaa", "DaemonSet", true),
		make("team-a", "notebook-0", "StatefulSet", true),
		make("kube-system", "metrics-server-6b7c8d9e0f-abcde", "ReplicaSet", true),
		make("default", "train-by-hand", "", false),
		make("inference", "llm-0", "StatefulSet", false),
	}
}

func TestDrainIsBlockedFromTheStart(t *testing.T) {
	c, set := client(nil, drainPods()...)
	err := c.Drain(context.Background(), "gpu-1", DrainOptions{}, nil)
	var blocked *DrainError
	if !errors.As(err, &blocked) || len(blocked.Blockers) != 2 {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"stays cordoned", "default/train-by-hand (" + NoController, "team-a/notebook-0 (" + LocalData} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
	for _, a := range set.Actions() {
		if a.GetVerb() == "delete" || a.GetSubresource() == "eviction" {
			t.Errorf("a pod was touched: %v", a)
		}
	}
	if n, _ := c.node(context.Background(), "gpu-1"); !n.Cordoned {
		t.Error("the node is not cordoned")
	}
}

func TestDrain(t *testing.T) {
	c, set := client(nil, drainPods()...)
	var evicted []string
	budget := 1
	set.PrependReactor("create", "pods", func(a ktesting.Action) (bool, runtime.Object, error) {
		e, ok := a.(ktesting.CreateAction).GetObject().(*policyv1.Eviction)
		if !ok {
			return false, nil, nil
		}
		if e.Name == "llm-0" && budget > 0 {
			budget--
			return true, nil, apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 1)
		}
		evicted = append(evicted, e.Namespace+"/"+e.Name)
		return true, nil, set.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), e.Namespace, e.Name)
	})
	all := DrainOptions{DeleteBare: true, DeleteLocalData: true, Limit: time.Minute, Every: time.Millisecond}
	if left, err := c.evictAll(context.Background(), "gpu-1", DrainOptions{}); err != nil || len(left) != 5 {
		t.Fatalf("first look: %v %v", left, err)
	}
	if err := c.Drain(context.Background(), "gpu-1", all, nil); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(evicted, " "); got != "default/train-by-hand kube-system/metrics-server-6b7c8d9e0f-abcde team-a/notebook-0 inference/llm-0" {
		t.Errorf("evicted %s", got)
	}
	rest, err := set.CoreV1().Pods("").List(context.Background(), metav1.ListOptions{})
	if err != nil || len(rest.Items) != 2 {
		t.Errorf("left: %v", rest.Items)
	}
}

func TestDrainMeetsABudget(t *testing.T) {
	yes := true
	p := pod("llm-0", "gpu-1", corev1.PodRunning)
	p.OwnerReferences = []metav1.OwnerReference{{Kind: "StatefulSet", Controller: &yes}}
	c, set := client(nil, gpuNode("gpu-1", 8), p)
	set.PrependReactor("create", "pods", func(ktesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewTooManyRequests("budget", 1)
	})
	err := c.Drain(context.Background(), "gpu-1", DrainOptions{Limit: time.Millisecond, Every: time.Microsecond}, nil)
	if err == nil || !strings.Contains(err.Error(), "default/llm-0 ("+Budget) {
		t.Errorf("got %v", err)
	}
}
