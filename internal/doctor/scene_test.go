package doctor

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuctl/gpuctl/internal/kube"
)

// list makes resources of "nvidia.com/gpu" and counts, in pairs.
func list(pairs ...any) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i].(string))] = *resource.NewQuantity(int64(pairs[i+1].(int)), resource.DecimalSI)
	}
	return out
}

// gpuNode is a node with two proven GPUs.
func gpuNode(name, address string) corev1.Node {
	return corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{flannelPublicIP: address}, Labels: map[string]string{
			"kubernetes.io/hostname": name, "feature.node.kubernetes.io/pci-10de.present": "true", "nvidia.com/gpu.present": "true",
			"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.deploy.device-plugin": "true",
		}},
		Status: corev1.NodeStatus{
			Capacity: list("nvidia.com/gpu", 2), Allocatable: list("nvidia.com/gpu", 2),
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}, {Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse}},
			Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}},
			NodeInfo:   corev1.NodeSystemInfo{KubeletVersion: "v1.36.3+k3s1", ContainerRuntimeVersion: "containerd://2.2.3-k3s1"},
		},
	}
}

// gpuPod asks for n GPUs and runs on a node, or waits where node is empty.
func gpuPod(name, node string, n int) corev1.Pod {
	p := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "train", Resources: corev1.ResourceRequirements{Limits: list("nvidia.com/gpu", n)}}}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
	if node == "" {
		p.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable"}}}
	}
	return p
}

func operand(name, node string) corev1.Pod {
	p := gpuPod(name, node, 0)
	p.Namespace, p.Spec.Containers[0].Resources = "gpu-operator", corev1.ResourceRequirements{}
	return p
}

func daemonSet(namespace, name, image string, env ...corev1.EnvVar) appsv1.DaemonSet {
	d := appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Image: image, Env: env}}
	return d
}

func operatorAt(namespace, version string) appsv1.Deployment {
	d := appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "gpu-operator", Labels: map[string]string{"app.kubernetes.io/component": "gpu-operator"}}}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Image: "nvcr.io/nvidia/gpu-operator:" + version}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "gpu-operator"}}
	d.Status.AvailableReplicas = 1
	return d
}

// healthy is a synthetic cluster of two GPU nodes where all is well: one pod
// holds a GPU, the operator is done.
func healthy() Seen {
	server := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "server", Labels: map[string]string{"node-role.kubernetes.io/control-plane": "true"}}, Status: corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		NodeInfo:   corev1.NodeSystemInfo{KubeletVersion: "v1.36.3+k3s1"},
	}}
	done := operand("nvidia-cuda-validator", "gpu-1")
	done.Status = corev1.PodStatus{Phase: corev1.PodSucceeded}
	return Seen{GPUNodes: []string{"gpu-1", "gpu-2"}, Objects: kube.Objects{
		Version: "v1.36.3+k3s1",
		Nodes:   []corev1.Node{gpuNode("gpu-1", "10.0.0.11"), gpuNode("gpu-2", "10.0.0.12"), server},
		Pods:    []corev1.Pod{gpuPod("llm-0", "gpu-1", 1), operand("nvidia-device-plugin-daemonset-x", "gpu-1"), done},
		DaemonSets: []appsv1.DaemonSet{
			daemonSet("gpu-operator", "gpu-operator-node-feature-discovery-worker", "registry.k8s.io/nfd/node-feature-discovery:v0.18.3"),
			daemonSet("gpu-operator", "nvidia-container-toolkit-daemonset", "nvcr.io/nvidia/k8s/container-toolkit:v1.20.0"),
		},
		Deployments: []appsv1.Deployment{operatorAt("gpu-operator", "v26.7.0")},
		Policies:    []kube.Policy{{Exists: true, Name: "cluster-policy", State: "ready", Reason: "Reconciled"}},
	}}
}

func waiting(p *corev1.Pod, reason, message string) {
	p.Status = corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{Name: "train", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}}
}

func warning(kind, namespace, name, reason, message string) corev1.Event {
	return corev1.Event{Type: corev1.EventTypeWarning, Reason: reason, Message: message, InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: namespace, Name: name}}
}
