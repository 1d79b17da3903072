package doctor

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuctl/gpuctl/internal/diag"
)

// Every trouble is found, and nothing else: what follows from it is hidden.
func TestTroubles(t *testing.T) {
	provoked := map[diag.Code]bool{}
	for _, table := range []map[string]trouble{nodeTroubles(), operatorTroubles(), operandTroubles(), podTroubles(), pendingTroubles(), imageTroubles()} {
		for name, c := range table {
			seen := healthy()
			c.change(&seen)
			found := diag.Reduce(Findings(seen))
			if len(found) != 1 || found[0].Code != c.code || found[0].Machine != c.node || !strings.Contains(found[0].Evidence, c.evidence) {
				t.Errorf("%s: %+v, want %s at %q with %q", name, found, c.code, c.node, c.evidence)
			}
			provoked[c.code] = true
		}
	}
	for _, code := range Codes() {
		if p, ok := diag.Lookup(code); !ok || p.Code != code {
			t.Errorf("%s is not in the catalogue", code)
		}
		if !provoked[code] {
			t.Errorf("nothing provokes %s", code)
		}
	}
	for code := range provoked {
		if !has(Codes(), code) {
			t.Errorf("%s is not among Codes", code)
		}
	}
}

func has(list []diag.Code, code diag.Code) bool {
	for _, c := range list {
		if c == code {
			return true
		}
	}
	return false
}

// failing adds an operand with a container that waits, and its warnings.
func failing(pod, reason, message string, events ...string) func(*Seen) {
	return func(s *Seen) {
		p := operand(pod, "gpu-1")
		waiting(&p, reason, message)
		s.Pods = append(s.Pods, p)
		for _, e := range events {
			s.Events = append(s.Events, warning("Pod", "gpu-operator", pod, "Failed", e))
		}
	}
}

func operandTroubles() map[string]trouble {
	return map[string]trouble{
		"operator killed": {func(s *Seen) {
			p := operand("gpu-operator-7d9", "server")
			waiting(&p, "CrashLoopBackOff", "back-off")
			p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{Reason: "OOMKilled", ExitCode: 137}
			s.Pods = append(s.Pods, p)
		}, "operator-out-of-memory", "server", "killed"},
		// NVIDIA/gpu-operator#2225
		"no driver image": {failing("nvidia-driver-daemonset-a", "ImagePullBackOff", `Back-off pulling image "nvcr.io/nvidia/driver:580.105.08-debian13"`,
			`Failed to pull image "nvcr.io/nvidia/driver:580.105.08-debian13": rpc error: code = NotFound desc = failed to resolve image: nvcr.io/nvidia/driver:580.105.08-debian13: not found`), "driver-image-missing", "gpu-1", "debian13"},
		"no driver image in a mirror": {failing("nvidia-driver-daemonset-a", "ErrImagePull", `failed to pull "m:5000/nvidia/driver:580-debian13": not found`), "driver-image-missing", "gpu-1", "debian13"},
		"other image":                 {failing("gpu-feature-discovery-a", "ImagePullBackOff", `Back-off pulling image "m:5000/x"`), "smoke-image-pull", "gpu-1", "m:5000/x"},
		"rate limit":                  {failing("gpu-feature-discovery-a", "ErrImagePull", "toomanyrequests: You have reached your pull rate limit"), "pull-rate-limit", "gpu-1", "toomanyrequests"},
		"waits for the driver": {func(s *Seen) {
			p := operand("nvidia-operator-validator-a", "gpu-1")
			p.Status = corev1.PodStatus{Phase: corev1.PodPending, InitContainerStatuses: []corev1.ContainerStatus{{Name: "driver-validation", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}}
			s.Pods = append(s.Pods, p)
		}, "operand-waits", "gpu-1", "driver-validation"},
		// NVIDIA/gpu-operator#413, #730
		"no runtime":   {failing("nvidia-device-plugin-daemonset-b", "", "", `Failed to create pod sandbox: rpc error: code = Unknown desc = failed to get sandbox runtime: no runtime for "nvidia" is configured`), "runtime-not-configured", "gpu-1", "no runtime"},
		"plugin fails": {failing("nvidia-device-plugin-daemonset-b", "CrashLoopBackOff", "back-off 5m0s restarting failed container"), "device-plugin-failing", "gpu-1", "CrashLoopBackOff"},
		"exporter":     {failing("nvidia-dcgm-exporter-b", "CrashLoopBackOff", "back-off"), "dcgm-unreachable", "gpu-1", "CrashLoopBackOff"},
		"peermem": {func(s *Seen) {
			failing("nvidia-driver-daemonset-a", "CrashLoopBackOff", "back-off")(s)
			s.Pods[len(s.Pods)-1].Status.ContainerStatuses[0].Name = "nvidia-peermem-ctr"
		}, "peermem-restart", "gpu-1", "peermem"},
		// NVIDIA/gpu-operator#2641
		"no configuration": {func(s *Seen) {
			s.Events = append(s.Events, warning("Pod", "gpu-operator", "nvidia-device-plugin-daemonset-b", "FailedMount", `MountVolume.SetUp failed for volume "time-slicing" : configmap "time-slicing" not found`))
		}, "plugin-config-missing", "", "time-slicing"},
		// Texts of NVIDIA/gpu-operator#1015, #671, NVIDIA/k8s-device-plugin#1431 and #231.
		"no major":         {failing("nvidia-operator-validator-a", "CrashLoopBackOff", "x", "failed to create device node nvidiactl: failed to determine major: invalid device node"), "driver-device-major", "gpu-1", ""},
		"no modeset":       {failing("nvidia-operator-validator-a", "CrashLoopBackOff", "x", "failed to load module nvidia-modeset: exit status 1; output=modprobe: No such device"), "driver-modules-incomplete", "gpu-1", ""},
		"version mismatch": {failing("gpu-feature-discovery-a", "RunContainerError", "nvidia-container-cli: initialization error: nvml error: driver/library version mismatch: unknown"), "driver-version-mismatch", "gpu-1", ""},
		// Seen in a container that stands for a machine, without mount --make-rshared.
		"private mounts": {failing("nvidia-operator-validator-a", "CreateContainerError", `failed to generate container "x" spec: failed to generate spec: path "/run/nvidia/driver" is mounted on "/run" but it is not a shared or slave mount`), "mount-not-shared", "gpu-1", "/run/nvidia/driver"},
		"lost GPU":       {failing("nvidia-device-plugin-daemonset-b", "CrashLoopBackOff", "x", "GetPreferredAllocation failed: rpc error: error getting list of preferred allocation devices"), "gpu-lost-blocks-all", "gpu-1", ""},
		"MPS clients":    {failing("nvidia-device-plugin-mps-control-daemon-b", "CrashLoopBackOff", "x", "invalid MPS configuration: maximum allowed replicas exceeded: 64 > 48"), "mps-too-many", "gpu-1", ""},
	}
}

func failed(reason, message string) func(*Seen) {
	return func(s *Seen) {
		p := gpuPod("job-1", "gpu-2", 1)
		p.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: reason, Message: message}
		s.Pods = append(s.Pods, p)
	}
}

// starting is a user's pod on gpu-2 with a container that waits.
func starting(reason, message string, events ...string) func(*Seen) {
	return func(s *Seen) {
		p := gpuPod("job-1", "gpu-2", 1)
		waiting(&p, reason, message)
		s.Pods = append(s.Pods, p)
		for _, e := range events {
			s.Events = append(s.Events, warning("Pod", "team-a", "job-1", "Failed", e))
		}
	}
}

func ended(message string) func(*Seen) {
	return func(s *Seen) {
		p := gpuPod("job-1", "gpu-2", 1)
		p.Status = corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{Name: "train", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", Message: message}}}}}
		s.Pods = append(s.Pods, p)
	}
}

func podTroubles() map[string]trouble {
	no := false
	hook := `failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: error running prestart hook #0: exit status 1, stdout: , stderr: Auto-detected mode as 'legacy' `
	return map[string]trouble{
		// NVIDIA/k8s-device-plugin#929
		"two shared units": {failed("UnexpectedAdmissionError", `Allocate failed due to rpc error: code = Unknown desc = request for "nvidia.com/gpu": invalid request: maximum request size for shared resources is 1; found 10, which is unexpected`), "smoke-shared-request", "gpu-2", "one is the most"},
		// kubernetes/kubernetes#125579
		"after a reboot": {failed("UnexpectedAdmissionError", "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices nvidia.com/gpu, which is unexpected"), "admission-after-restart", "gpu-2", "delete it"},
		// kubernetes/kubernetes#130145
		"stale devices": {failed("UnexpectedAdmissionError", "Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. Requested: 1, Available: 0, which is unexpected"), "smoke-admission-refused", "gpu-2", "Available: 0"},
		"evicted":       {failed("Evicted", "The node was low on resource: ephemeral-storage."), "node-pressure", "gpu-2", "ephemeral-storage"},
		// SyneRBI/PETRIC2#27
		"image too new": {starting("CreateContainerError", hook, hook+"nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.8, please update your driver to a newer version, or use an earlier cuda container: unknown"), "smoke-image-too-new", "gpu-2", ""},
		"GPU hangs":     {starting("RunContainerError", hook+"nvidia-container-cli: initialization error: driver rpc error: timed out"), "toolkit-timeout", "gpu-2", ""},
		"image too old": {ended("CUDA error: no kernel image is available for execution on the device"), "smoke-image-too-old", "gpu-2", ""},
		"no libraries":  {ended("CUDA driver version is insufficient for CUDA runtime version"), "cuda-insufficient", "gpu-2", ""},
		// NVIDIA/gpu-operator#1043
		"error 802":       {ended("Failed to allocate device vector A (error code system not yet initialized)!"), "fabric-manager-down", "gpu-2", ""},
		"daemon-reload":   {ended("Failed to initialize NVML: Unknown Error"), "nvml-lost", "gpu-2", ""},
		"SELinux":         {ended("Failed to initialize NVML: Insufficient Permissions"), "nvml-permissions", "gpu-2", ""},
		"a program fails": {func(s *Seen) { ended("KeyError: 'loss'")(s); s.GPUNodes = append(s.GPUNodes, "gpu-9") }, "node-not-registered", "gpu-9", ""},
		"user namespace":  {func(s *Seen) { s.Pods[0].Spec.HostUsers = &no }, "user-namespace-pod", "gpu-1", "llm-0"},
		"GPU in an init container": {func(s *Seen) {
			s.Pods[0].Spec.InitContainers = []corev1.Container{{Name: "warm", Resources: corev1.ResourceRequirements{Limits: list("nvidia.com/gpu", 1)}}}
		}, "pods-fail-on-restart", "gpu-1", "warm"},
		"all GPUs by the variable": {func(s *Seen) {
			p := gpuPod("notebook", "gpu-1", 0)
			p.Spec.Containers[0].Resources, p.Spec.Containers[0].Env = corev1.ResourceRequirements{}, []corev1.EnvVar{{Name: "NVIDIA_VISIBLE_DEVICES", Value: "all"}}
			s.Pods = append(s.Pods, p)
		}, "gpu-visible-without-request", "gpu-1", "team-a/notebook"},
		"left on a node that is gone": {func(s *Seen) {
			now := metav1.Now()
			p := gpuPod("old", "gpu-7", 1)
			p.DeletionTimestamp = &now
			s.Pods = append(s.Pods, p)
		}, "pods-stuck-terminating", "gpu-7", "team-a/old"},
		"quota": {func(s *Seen) {
			s.Events = append(s.Events, warning("Job", "team-a", "train", "FailedCreate", `Error creating: pods "train-x" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=4, used: requests.nvidia.com/gpu=2, limited: requests.nvidia.com/gpu=4`))
		}, "pod-quota", "", "job team-a/train"},
		"pod security": {func(s *Seen) {
			s.Events = append(s.Events, warning("DaemonSet", "gpu-operator", "nvidia-driver-daemonset", "FailedCreate", `Error creating: pods "nvidia-driver-daemonset-" is forbidden: violates PodSecurity "restricted:latest": privileged`))
		}, "pod-security", "", "nvidia-driver-daemonset"},
		"runtime class": {func(s *Seen) {
			s.Events = append(s.Events, warning("ReplicaSet", "team-a", "llm", "FailedCreate", `Error creating: pods "llm-" is forbidden: pod rejected: RuntimeClass "nvidia" not found`))
		}, "pod-runtime-class", "", "replicaset team-a/llm"},
	}
}

// pending adds a pod that asks for a resource and has no node.
func pending(resource string, n int, more ...func(*Seen, *corev1.Pod)) func(*Seen) {
	return func(s *Seen) {
		p := gpuPod("want", "", 0)
		p.Spec.Containers[0].Resources.Limits = list(resource, n)
		for _, m := range more {
			m(s, &p)
		}
		s.Pods = append(s.Pods, p)
	}
}

func pendingTroubles() map[string]trouble {
	taint := func(node int, key string) func(*Seen, *corev1.Pod) {
		return func(s *Seen, _ *corev1.Pod) {
			s.Nodes[node].Spec.Taints = []corev1.Taint{{Key: key, Effect: corev1.TaintEffectNoSchedule}}
		}
	}
	full := func(s *Seen, _ *corev1.Pod) { s.Pods = append(s.Pods, gpuPod("big", "gpu-2", 2)) }
	return map[string]trouble{
		"more than any node has": {pending("nvidia.com/gpu", 4), "pod-no-free-gpu", "", "no single node has more than 2"},
		"all taken":              {pending("nvidia.com/gpu", 2, full), "pod-no-free-gpu", "", "gpu-1 has 1 nvidia.com/gpu free, gpu-2 has 0 nvidia.com/gpu free"},
		// NVIDIA/k8s-device-plugin#1433
		"renamed by sharing": {func(s *Seen) {
			s.Pods = s.Pods[1:]
			for i := range s.Nodes[:2] {
				s.Nodes[i].Status.Capacity = list("nvidia.com/gpu", 0, "nvidia.com/gpu.shared", 8)
				s.Nodes[i].Status.Allocatable = list("nvidia.com/gpu", 0, "nvidia.com/gpu.shared", 8)
			}
			pending("nvidia.com/gpu", 1)(s)
		}, "pod-resource-renamed", "", "asks for nvidia.com/gpu; the cluster offers nvidia.com/gpu.shared"},
		"another MIG profile": {pending("nvidia.com/mig-1g.10gb", 1), "pod-resource-renamed", "", "no node has this MIG profile; the cluster offers nvidia.com/gpu"},
		"not proven":          {pending("nvidia.com/gpu", 2, taint(1, unprovenTaint)), "pod-node-unproven", "", "gpu-2"},
		"taint":               {pending("nvidia.com/gpu", 2, taint(1, "team")), "pod-untolerated-taint", "", "gpu-2 (team:NoSchedule)"},
		"selector": {pending("nvidia.com/gpu", 1, func(_ *Seen, p *corev1.Pod) {
			p.Spec.NodeSelector = map[string]string{"nvidia.com/gpu.product": "NVIDIA-L40S"}
		}), "pod-node-selector", "", "NVIDIA-L40S"},
		"volume": {pending("nvidia.com/gpu", 1, func(_ *Seen, p *corev1.Pod) {
			p.Status.Conditions[0].Message = "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims."
		}), "pod-volume", "", "unbound"},
		"half a job": {func(s *Seen) {
			s.Nodes = append([]corev1.Node{}, s.Nodes...)
			s.Pods[0].Labels = map[string]string{"batch.kubernetes.io/job-name": "pretrain"}
			pending("nvidia.com/gpu", 1, func(_ *Seen, p *corev1.Pod) { p.Labels = s.Pods[0].Labels })(s)
		}, "gang-half-placed", "", "1 pods run, 1 wait"},
	}
}
