package kube

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
)

// operandScene is a daemonset of the operator with two revisions and a pod on
// each of two nodes, changed by a test.
type operandScene struct {
	set  *appsv1.DaemonSet
	pods map[string]*corev1.Pod
	all  []runtime.Object
}

func newOperandScene() *operandScene {
	yes := true
	owner := func(kind, name string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{Kind: kind, Name: name, UID: types.UID(name), Controller: &yes}}
	}
	s := &operandScene{pods: map[string]*corev1.Pod{}}
	s.set = &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "gpu-operator", Name: "plugin", UID: "plugin", OwnerReferences: owner("ClusterPolicy", "policy")},
		Spec:       appsv1.DaemonSetSpec{UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}},
		Status:     appsv1.DaemonSetStatus{DesiredNumberScheduled: 2, CurrentNumberScheduled: 2},
	}
	driver := s.set.DeepCopy()
	driver.Name, driver.UID, driver.Spec.UpdateStrategy.Type = "nvidia-driver-daemonset", "driver", "Other"
	foreign := s.set.DeepCopy()
	foreign.Name, foreign.UID, foreign.OwnerReferences = "nfd", "nfd", nil
	foreign.Spec.UpdateStrategy.Type = "Other"
	s.all = []runtime.Object{s.set, driver, foreign}
	for i, hash := range []string{"old", "new"} {
		s.all = append(s.all, &appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{Namespace: "gpu-operator", Name: "plugin-" + hash, Labels: map[string]string{"controller-revision-hash": hash}, OwnerReferences: owner("DaemonSet", "plugin")},
			Revision:   int64(i + 1),
		})
	}
	for node, hash := range map[string]string{"gpu-1": "new", "gpu-2": "old"} {
		s.pods[node] = &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "gpu-operator", Name: "plugin-" + node, Labels: map[string]string{"controller-revision-hash": hash}, OwnerReferences: owner("DaemonSet", "plugin")},
			Spec:       corev1.PodSpec{NodeName: node},
			Status:     corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
		}
		s.all = append(s.all, s.pods[node])
	}
	return s
}

func TestOperandsCurrent(t *testing.T) {
	one, both := []string{"gpu-1"}, []string{"gpu-1", "gpu-2"}
	for name, c := range map[string]struct {
		change func(*operandScene)
		nodes  []string
		remove bool
		done   bool
		reason string
	}{
		"the first node is current": {nil, one, false, true, ""},
		"the other is not":          {nil, both, false, false, "plugin-gpu-2 on gpu-2 is outdated"},
		"and is replaced":           {nil, both, true, false, "plugin-gpu-2 ends"},
		"rolling is not asked yet":  {func(s *operandScene) { s.set.Spec.UpdateStrategy.Type = "RollingUpdate" }, one, false, false, "the operator has not come to plugin yet"},
		"the controller is behind":  {func(s *operandScene) { s.set.Generation = 3 }, one, false, false, "the operator has not come to plugin yet"},
		"a pod is missing":          {func(s *operandScene) { s.set.Status.DesiredNumberScheduled = 3 }, one, false, false, "plugin has no pod yet on 1 nodes"},
		"a pod is not Ready":        {func(s *operandScene) { s.pods["gpu-1"].Status.Conditions = nil }, one, false, false, "plugin-gpu-1 on gpu-1 is not Ready: Running"},
		"an image that cannot be had": {func(s *operandScene) {
			s.pods["gpu-1"].Status = corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "not found"}}}}}
		}, one, false, false, "plugin-gpu-1 on gpu-1 is not Ready: ImagePullBackOff: not found"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newOperandScene()
			if c.change != nil {
				c.change(s)
			}
			set := fake.NewClientset(s.all...)
			done, reason, err := New(set, nil).OperandsCurrent(Operands{Namespace: "gpu-operator", Nodes: c.nodes, Strategy: "OnDelete", Delete: c.remove})(t.Context())
			if err != nil || done != c.done || !strings.HasPrefix(reason, c.reason) || done && reason != "" {
				t.Errorf("%v %q %v, want %v %q", done, reason, err, c.done, c.reason)
			}
			list, err := set.CoreV1().Pods("gpu-operator").List(t.Context(), metav1.ListOptions{})
			if left := len(list.Items); err != nil || (left == 1) != c.remove {
				t.Errorf("%d pods are left (%v); outdated ones go only when asked", left, err)
			}
		})
	}
}
