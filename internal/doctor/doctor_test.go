package doctor

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/kube"
)

type trouble struct {
	change   func(*Seen)
	code     diag.Code
	node     string
	evidence string
}

func TestAHealthyClusterHasNoFindings(t *testing.T) {
	if found := Findings(healthy()); len(found) > 0 {
		t.Errorf("%+v", found)
	}
	if found := Findings(Seen{}); len(found) > 0 {
		t.Errorf("an empty cluster: %+v", found)
	}
}

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

func label(node int, key, value string) func(*Seen) {
	return func(s *Seen) { s.Nodes[node].Labels[key] = value }
}

func nodeTroubles() map[string]trouble {
	return map[string]trouble{
		"not ready": {func(s *Seen) {
			s.Nodes[1].Status.Conditions[0] = corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Reason: "NodeStatusUnknown", Message: "Kubelet stopped posting node status."}
		}, "node-not-ready", "gpu-2", "Kubelet stopped posting"},
		"not joined":    {func(s *Seen) { s.GPUNodes = append(s.GPUNodes, "gpu-3") }, "node-not-registered", "gpu-3", "no node gpu-3"},
		"disk pressure": {func(s *Seen) { s.Nodes[0].Status.Conditions[1].Status = corev1.ConditionTrue }, "node-pressure", "gpu-1", "DiskPressure"},
		"cordoned":      {func(s *Seen) { s.Nodes[0].Spec.Unschedulable = true }, "node-cordoned", "gpu-1", "2 nvidia.com/gpu"},
		"old kubelet":   {func(s *Seen) { s.Nodes[0].Status.NodeInfo.KubeletVersion = "v1.35.9+k3s1" }, "kubelet-version-skew", "gpu-1", "v1.35.9+k3s1"},
		// NVIDIA/k8s-device-plugin#403: the GPU leaves allocatable, capacity stays.
		"7 of 8": {func(s *Seen) {
			s.Nodes[0].Status.Capacity, s.Nodes[0].Status.Allocatable = list("nvidia.com/gpu", 8), list("nvidia.com/gpu", 7)
		}, "gpu-unhealthy", "gpu-1", "7 of 8 nvidia.com/gpu"},
		"nothing offered": {func(s *Seen) { s.Nodes[0].Status.Capacity, s.Nodes[0].Status.Allocatable = nil, nil }, "smoke-nothing-allocatable", "gpu-1", "offers none"},
		"no labels": {func(s *Seen) {
			s.Nodes[0].Status.Capacity, s.Nodes[0].Status.Allocatable, s.Nodes[0].Labels = nil, nil, nil
		}, "nfd-labels-missing", "gpu-1", "pci-10de"},
		// NVIDIA/gpu-operator#603
		"MIG without instances": {func(s *Seen) {
			s.Nodes[0].Status.Capacity, s.Nodes[0].Status.Allocatable = list("nvidia.com/gpu", 0), list("nvidia.com/gpu", 0)
			label(0, labelMIGCapable, "true")(s)
			label(0, labelMIGState, "success")(s)
			label(0, "nvidia.com/mig.config", "all-1g.10gb")(s)
		}, "mig-empty", "gpu-1", "all-1g.10gb"},
		"MIG failed":     {label(1, labelMIGState, "failed"), "mig-config-failed", "gpu-2", "failed"},
		"upgrade failed": {label(1, labelUpgrade, "upgrade-failed"), "driver-upgrade-stuck", "gpu-2", "upgrade-failed"},
		"paused for ever": {func(s *Seen) {
			label(0, labelDeploy+"device-plugin", pausedValue)(s)
			label(0, labelUpgrade, "upgrade-done")(s)
		}, "operator-driver-paused", "gpu-1", "device-plugin"},
		// k3s-io/k3s#1131
		"flannel on the other network": {func(s *Seen) { s.Nodes[0].Annotations[flannelPublicIP] = "203.0.113.7" }, "overlay-wrong-interface", "gpu-1", "203.0.113.7, the node's address is 10.0.0.11"},
	}
}

func operatorTroubles() map[string]trouble {
	policy := func(state, reason, message string) func(*Seen) {
		return func(s *Seen) {
			s.Policies[0] = kube.Policy{Exists: true, State: state, Reason: reason, Message: message}
		}
	}
	return map[string]trouble{
		// helm/helm#30601: a second install under a generated name.
		"two operators": {func(s *Seen) { s.Deployments = append(s.Deployments, operatorAt("default", "v26.3.3")) }, "operators-two", "", "default/gpu-operator"},
		"two policies":  {func(s *Seen) { s.Policies = append(s.Policies, s.Policies[0]) }, "operators-two", "", "2 ClusterPolicies"},
		"none":          {func(s *Seen) { s.Deployments, s.Policies, s.Pods = nil, nil, nil }, "operator-missing", "", "2 nodes"},
		"down":          {func(s *Seen) { s.Deployments[0].Status.AvailableReplicas = 0 }, "operator-deployment-down", "", "gpu-operator/gpu-operator"},
		"not ready":     {policy("notReady", "OperandNotReady", "states not ready: [state-device-plugin]"), "operator-not-ready", "", "state-device-plugin"},
		"refused":       {policy("notReady", "ReconcileFailed", "driver.version"), "operator-policy-error", "", "driver.version"},
		// Ready by name alone: no GPU anywhere.
		"ready without labels": {policy("ready", "NFDLabelsMissing", "No NFD labels found in the cluster"), "nfd-labels-missing", "", "NFDLabelsMissing"},
		"two discoveries": {func(s *Seen) {
			s.DaemonSets = append(s.DaemonSets, daemonSet("network-operator", "network-operator-node-feature-discovery-worker", "nfd:v0.17.3"))
		}, "nfd-twice", "", "network-operator/"},
		// NVIDIA/gpu-operator#782
		"old discovery": {func(s *Seen) {
			s.DaemonSets[0].Spec.Template.Spec.Containers[0].Image = "registry.k8s.io/nfd/node-feature-discovery:v0.14.2"
		}, "nfd-labels-vanish", "", "v0.14.2"},
		"InfiniBand with 26.3.1": {func(s *Seen) {
			s.Deployments[0] = operatorAt("gpu-operator", "v26.3.1")
			s.Nodes[0].Status.Capacity["rdma/hca_shared"] = list("x", 1)["x"]
		}, "rdma-devices-all", "", "v26.3.1"},
		// NVIDIA/gpu-operator#1109
		"toolkit 1.17.0": {func(s *Seen) {
			s.DaemonSets[1].Spec.Template.Spec.Containers[0].Image = "nvcr.io/nvidia/k8s/container-toolkit:v1.17.0-ubuntu20.04"
		}, "toolkit-containerd-dump", "", "v1.17.0"},
		"toolkit 1.18.0": {func(s *Seen) {
			s.DaemonSets[1].Spec.Template.Spec.Containers[0].Image = "m:5000/container-toolkit:v1.18.0@sha256:00"
		}, "toolkit-imports-replaced", "", "v1.18.0"},
		// NVIDIA/gpu-operator#992
		"toolkit writes the template": {func(s *Seen) {
			s.DaemonSets[1].Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "CONTAINERD_CONFIG", Value: "/var/lib/rancher/rke2/agent/etc/containerd/config.toml.tmpl"}}
		}, "containerd-template-by-toolkit", "", "config.toml.tmpl"},
	}
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

// speaking is a pod that runs and whose log ends with these lines.
func speaking(lines string) func(*Seen) {
	return func(s *Seen) { s.Tails = map[string]string{"team-a/llm-0": lines} }
}

func TestPodsThatHangOrFailGetASentence(t *testing.T) {
	lost := diag.Found("gpu-lost", "gpu-1", "0000:18:00.0: Xid 79 (fallen off the bus)")
	for name, c := range map[string]struct {
		change func(*Seen)
		code   diag.Code
		why    string
	}{
		"all is well":                   {func(*Seen) {}, "", ""},
		"a log that says nothing":       {speaking("step 12 loss 0.3\nImagePullBackOff in my own words"), "", ""},
		"NVML lost after daemon-reload": {speaking("step 12\nFailed to initialize NVML: Unknown Error\nretrying"), "nvml-lost", "it runs, and its log ends with: Failed to initialize NVML: Unknown Error"},
		"no memory to lock":             {speaking("gpu-1:31:88 NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory"), "memlock-low", "ibv_reg_mr"},
		"shared memory is too small":    {speaking("Bus error (core dumped)"), "shm-small", "its log ends with: Bus error"},
		"lost by its own words":         {speaking("RuntimeError: CUDA error: GPU is lost"), "gpu-lost", "GPU is lost"},
		"beside a fault": {func(s *Seen) { s.Faults = map[string][]diag.Finding{"gpu-1": {lost}} }, "gpu-lost",
			"it runs on a machine whose GPUs are at fault, its own may be among them: 0000:18:00.0: Xid 79"},
		"failed beside a fault": {func(s *Seen) {
			ended("unspecified launch failure")(s)
			s.Pods = s.Pods[1:]
			s.Faults = map[string][]diag.Finding{"gpu-2": {lost}}
		}, "gpu-lost", "it failed on a machine whose GPUs are at fault (0000:18:00.0: Xid 79 (fallen off the bus)): container train: exit 1"},
		"an image too new for the driver": {func(s *Seen) {
			ended("unknown error")(s)
			s.Pods = s.Pods[1:]
			s.Unfit = func(_, node string) string { return "CUDA 13.0 needs driver 580, " + node + " has 535.104.05" }
		}, "smoke-image-too-new", "CUDA 13.0 needs driver 580, gpu-2 has 535.104.05"},
		"words of its own come first": {func(s *Seen) {
			ended("CUDA driver version is insufficient for CUDA runtime version")(s)
			s.Pods = s.Pods[1:]
			s.Unfit = func(string, string) string { return "never asked" }
		}, "cuda-insufficient", "exit 1"},
	} {
		seen := healthy()
		c.change(&seen)
		got := Reasons(seen)
		if c.code == "" {
			if len(got) != 0 {
				t.Errorf("%s: %+v", name, got)
			}
			continue
		}
		if len(got) != 1 || got[0].Code != c.code || !strings.Contains(got[0].Why, c.why) {
			t.Errorf("%s: %+v, want %s: %s", name, got, c.code, c.why)
		}
	}
	for _, code := range spoken() {
		if _, ok := diag.Lookup(code); !ok {
			t.Errorf("%s is not in the catalogue", code)
		}
	}
}

// What fits a hidden finding still is a pod's reason.
func TestReasonsAreThereThoughTheFindingIsHidden(t *testing.T) {
	s := healthy()
	s.Pods = s.Pods[1:]
	for i := range s.Nodes[:2] {
		s.Nodes[i].Status.Capacity, s.Nodes[i].Status.Allocatable, s.Nodes[i].Labels = nil, nil, nil
	}
	pending("nvidia.com/gpu", 1)(&s)
	for _, f := range diag.Reduce(Findings(s)) {
		if f.Code != "nfd-labels-missing" {
			t.Errorf("%+v", f)
		}
	}
	if got := Reasons(s); len(got) != 1 || got[0].Pod != "team-a/want" || got[0].Why != "no node of the cluster offers nvidia.com/gpu" {
		t.Errorf("%+v", got)
	}
}

func TestATolerationLetsPodsIn(t *testing.T) {
	s := healthy()
	s.Nodes[1].Spec.Taints = []corev1.Taint{{Key: "team", Value: "a", Effect: corev1.TaintEffectNoSchedule}}
	for o, in := range map[corev1.Toleration]bool{
		{Key: "team", Operator: corev1.TolerationOpExists}:                                      true,
		{Operator: corev1.TolerationOpExists}:                                                   true,
		{Key: "team", Value: "a", Effect: corev1.TaintEffectNoSchedule}:                         true,
		{Key: "team", Value: "b"}:                                                               false,
		{Key: "team", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}: false,
	} {
		p := gpuPod("want", "", 2)
		p.Spec.Tolerations = []corev1.Toleration{o}
		code, why := WhyNot(&p, s)
		if (code == "") != in {
			t.Errorf("%+v: %s %s", o, code, why)
		}
	}
}

func TestVersionsOfImages(t *testing.T) {
	for image, want := range map[string]string{"a/b:v1.2.3": "v1.2.3", "m:5000/a": "", "m:5000/a:v1@sha256:0": "v1", "a": ""} {
		if got := tag(image); got != want {
			t.Errorf("%s: %q", image, got)
		}
	}
	if !older("v26.3.1", "v26.3.3") || older("v26.7.0", "v26.3.3") || older("v0.16.2", "v0.16.2") || !older("v0.9.9-x", "v0.16.2") {
		t.Error("order of versions")
	}
}
