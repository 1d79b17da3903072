package smoke

import (
	_ "embed"
	"fmt"
	"hash/fnv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Namespace is where the test pods live, for the time of a test.
const Namespace = "gpuctl-smoke"

// Resource is what a pod asks for to get a GPU.
const Resource = "nvidia.com/gpu"

// UnprovenTaint is the key of the taint of a node that has not passed yet.
const UnprovenTaint = "gpuctl.dev/unproven"

//go:embed script.sh
var script string

// Pod is the test pod of a node. It is pure. The pod goes through the scheduler
// (a pod with nodeName would be refused by the kubelet instead of waiting, and
// nobody would say why), bears the taints of an unproven and of a cordoned node,
// and carries no credentials.
func Pod(n Node, o Options, mark string, attempt int) *corev1.Pod {
	count := *resource.NewQuantity(int64(n.ask()), resource.DecimalSI)
	deadline := int64((o.Limits.withDefaults().Started + o.Limits.withDefaults().Ran + time.Minute) / time.Second)
	no, grace := false, int64(0)
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: Namespace, Name: podName(n.key(), mark, attempt),
			Labels: map[string]string{"app.kubernetes.io/managed-by": "gpuctl", "app.kubernetes.io/name": "gpuctl-smoke", "gpuctl.dev/smoke": mark},
		},
		Spec: corev1.PodSpec{
			RestartPolicy:                 corev1.RestartPolicyNever,
			AutomountServiceAccountToken:  &no,
			EnableServiceLinks:            &no,
			TerminationGracePeriodSeconds: &grace,
			ActiveDeadlineSeconds:         &deadline,
			Affinity:                      onNode(n.Name),
			Tolerations:                   tolerations(o.Taints),
			Containers: []corev1.Container{{
				Name: "smoke", Image: o.Image, ImagePullPolicy: corev1.PullIfNotPresent,
				Command:         []string{"sh", "-c", script, "sh", mark},
				Args:            o.Programs,
				Resources:       corev1.ResourceRequirements{Limits: corev1.ResourceList{n.resource(): count}},
				SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: &no},
			}},
		},
	}
	if o.RuntimeClass != "" {
		pod.Spec.RuntimeClassName = &o.RuntimeClass
	}
	return pod
}

// podName is unique per run, node and attempt, and a valid name whatever the node is called.
func podName(node, mark string, attempt int) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(node))
	if len(mark) > 8 {
		mark = mark[:8]
	}
	return fmt.Sprintf("smoke-%s-%08x-%d", mark, h.Sum32(), attempt)
}

func onNode(name string) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{name}}},
		}}},
	}}
}

func tolerations(more []string) []corev1.Toleration {
	keys := append([]string{UnprovenTaint, Resource, corev1.TaintNodeUnschedulable}, more...)
	var all []corev1.Toleration
	for _, key := range keys {
		all = append(all, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule})
	}
	return all
}
