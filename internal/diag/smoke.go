package diag

// smokeProblems are what the test of a node's GPUs can fail with.
func smokeProblems() []Problem {
	return append(proofProblems(), podProblems()...)
}

func proofProblems() []Problem {
	return []Problem{
		{
			Code: "smoke-nothing-allocatable", Area: "workload", Severity: Blocks,
			Title:     "Kubernetes offers no GPU of this node",
			Symptom:   "allocatable nvidia.com/gpu is 0 while the machine has GPUs",
			Cause:     "the device plugin has not registered: it waits for the driver, the toolkit or its own image, or the node lacks its label",
			Fix:       []string{"kubectl -n gpu-operator get pods -o wide --field-selector spec.nodeName=NODE", "kubectl -n gpu-operator logs -l app=nvidia-device-plugin-daemonset"},
			DependsOn: []Code{"node-not-ready", "driver-missing", "driver-not-loaded", "runtime-not-configured", "nfd-labels-missing", "operand-waits", "operator-not-ready"},
			Reference: "https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/troubleshooting.html",
		},
		{
			Code: "smoke-log-cut", Area: "workload", Severity: Blocks,
			Title:   "The test pod's log is not whole",
			Symptom: "marks of this run are missing in the log",
			Cause:   "the container was killed, the log was rotated, or the kubelet's port 10250 is not reached",
			Fix:     []string{"gpuctl smoke --nodes NODE again", "kubectl get --raw /api/v1/nodes/NODE/proxy/healthz"},
		},
		{
			Code: "smoke-nvidia-smi-failed", Area: "workload", Severity: Blocks,
			Title:     "nvidia-smi fails inside a pod",
			Symptom:   "nvidia-smi works on the machine and not in a container",
			Cause:     "driver libraries or devices are not injected: CDI or the runtime class does not act",
			Fix:       []string{"gpu.runtimePath: runtimeClass, and in pods runtimeClassName: nvidia, or the other way round", "on the machine: nvidia-ctk cdi list; ls /var/run/cdi"},
			DependsOn: []Code{"nvml-lost", "driver-version-mismatch", "gpu-lost"},
			Reference: "NVIDIA/gpu-operator#415",
		},
		{
			Code: "smoke-program-missing", Area: "workload", Severity: Blocks,
			Title:   "The test image lacks vectorAdd",
			Symptom: "the program was not found in the image",
			Cause:   "an image of one's own was named for the test",
			Fix:     []string{"use the set's image, or one of NVIDIA's cuda-sample images"},
		},
		{
			Code: "smoke-uuid-foreign", Area: "workload", Severity: Blocks,
			Title:   "The pod names a GPU the machine does not have",
			Symptom: "a UUID of the pod is not in the machine's nvidia-smi -L",
			Cause:   "the image brings its own nvidia-smi, or the pod ran on another machine than its node's name says",
			Fix:     []string{"kubectl get node NODE -o wide: is the address this machine's?", "use the set's test image"},
		},
		{
			Code: "smoke-uuid-duplicate", Area: "workload", Severity: Blocks,
			Title:   "The pod lists one GPU twice",
			Symptom: "a UUID stands twice in the pod's nvidia-smi -L",
			Cause:   "the GPU is shared and one unit was counted as one GPU, or the image's nvidia-smi is not the driver's",
			Fix:     []string{"gpuctl gpu list: is the node shared?", "use the set's test image"},
		},
		{
			Code: "smoke-uuid-count", Area: "workload", Severity: Blocks,
			Title:     "The pod sees another number of GPUs than it was given",
			Symptom:   "1 GPU was asked for and 8 are visible, or fewer than asked",
			Cause:     "NVIDIA_VISIBLE_DEVICES of the image gives all GPUs to a container whose runtime trusts it, or one GPU fell out after it was given",
			Fix:       []string{"gpu.runtimePath: cdi", "or device plugin with volume-mounts: DEVICE_LIST_STRATEGY, ACCEPT_NVIDIA_VISIBLE_DEVICES_ENVVAR_WHEN_UNPRIVILEGED=false"},
			Reference: "https://github.com/NVIDIA/k8s-device-plugin#readme",
		},
		{
			Code: "smoke-device-nodes", Area: "workload", Severity: Blocks,
			Title:   "Device nodes and listed GPUs differ in the pod",
			Symptom: "the container has more or fewer /dev/nvidiaN than nvidia-smi lists",
			Cause:   "devices are injected twice by two ways, or one of the nodes is stale",
			Fix:     []string{"ls -l /dev/nvidia* on the machine", "restart the device plugin: kubectl -n gpu-operator rollout restart daemonset nvidia-device-plugin-daemonset"},
		},
		{
			Code: "smoke-compute-failed", Area: "workload", Severity: Blocks,
			Title:     "vectorAdd fails on a GPU",
			Symptom:   "the program ends with an error of CUDA",
			Cause:     "the GPU, the driver or the fabric; the kernel log of the machine says which",
			Fix:       []string{"sudo dmesg | grep -iE 'xid|nvrm' on the machine", "gpuctl doctor --nodes NODE", "reboot; if it stays, replace the machine"},
			DependsOn: []Code{"fabric-manager-down", "fabric-manager-version", "fabric-not-ready", "gpu-lost", "uvm-missing", "cuda-hmm-kaslr", "smoke-image-too-new", "smoke-image-too-old"},
			Reference: "https://docs.nvidia.com/deploy/xid-errors/",
		},
		{
			Code: "smoke-not-proven", Area: "workload", Severity: Blocks,
			Title:   "The node's GPUs are not proven",
			Symptom: "the test ended without a verdict on every GPU; the taint gpuctl.dev/unproven stays",
			Cause:   "GPUs were in use, the machine could not be asked for its own list, or a step before failed",
			Fix:     []string{"gpuctl smoke --nodes NODE once its GPUs are free"},
		},
	}
}

func podProblems() []Problem {
	return []Problem{
		{
			Code: "smoke-image-too-new", Aliases: []string{"D13"}, Area: "workload", Severity: Warns,
			Title:      "The image needs a newer driver",
			Symptom:    "unsatisfied condition: cuda>=12.8",
			Cause:      "the image was built with a CUDA the node's driver does not serve; the cluster itself is fine",
			Fix:        []string{"use an image of an older CUDA, or install a newer driver branch", "NVIDIA_DISABLE_REQUIRE=1 only hides it and proves nothing"},
			Match:      []string{"requirement error: unsatisfied condition", "unsatisfied condition: cuda>="},
			DependsOn:  []Code{"image-needs-newer-driver", "image-drops-gpu"},
			Reference:  "NVIDIA/nvidia-container-toolkit#152",
			Unverified: true,
		},
		{
			Code: "smoke-image-too-old", Aliases: []string{"D15"}, Area: "workload", Severity: Warns,
			Title:      "The image is older than the GPU",
			Symptom:    "no kernel image is available for execution on the device; invalid device function",
			Cause:      "the program was not compiled for this compute capability; Blackwell needs CUDA 12.8 or later",
			Fix:        []string{"use an image with a newer CUDA"},
			Match:      []string{"no kernel image is available", "invalid device function"},
			DependsOn:  []Code{"image-drops-gpu", "image-older-than-gpu"},
			Reference:  "SyneRBI/PETRIC2#27",
			Unverified: true,
		},
		{
			Code: "smoke-image-pull", Area: "workload", Severity: Blocks,
			Title:     "An image cannot be pulled",
			Symptom:   "ErrImagePull, ImagePullBackOff",
			Cause:     "the name or tag does not exist, the registry asks for a login, or it is not reached from the node",
			Fix:       []string{"kubectl describe pod: the event says which of the three", "on the node: k3s crictl pull IMAGE", "sources.images or kubernetes.registries for a mirror"},
			Match:     []string{"imagepullbackoff", "errimagepull", "invalidimagename", "failed to pull image"},
			DependsOn: []Code{"pull-rate-limit", "driver-image-missing"},
			Reference: "https://kubernetes.io/docs/concepts/containers/images/",
		},
		{
			Code: "smoke-container-failed", Area: "workload", Severity: Blocks,
			Title:     "The container cannot be started",
			Symptom:   "CreateContainerError, RunContainerError, FailedCreatePodSandBox",
			Cause:     "the container runtime or NVIDIA's hook refuses; the event says what",
			Fix:       []string{"kubectl describe pod", "gpuctl doctor --nodes NODE"},
			Match:     []string{"createcontainererror", "runcontainererror", "failedcreatepodsandbox"},
			DependsOn: []Code{"mount-not-shared", "runtime-not-configured", "smoke-image-too-new", "driver-version-mismatch", "toolkit-timeout"},
		},
		{
			Code: "smoke-unschedulable", Area: "workload", Severity: Blocks,
			Title:     "The test pod finds no place on its node",
			Symptom:   "Unschedulable, Insufficient nvidia.com/gpu",
			Cause:     "other pods took the GPUs meanwhile, the node is cordoned, or the GPUs have another resource name",
			Fix:       []string{"kubectl describe node NODE: allocated resources, taints", "gpuctl node uncordon NODE"},
			DependsOn: []Code{"pod-no-free-gpu", "pod-resource-renamed", "gpu-unhealthy", "node-cordoned"},
		},
		{
			Code: "smoke-admission-refused", Aliases: []string{"D21"}, Area: "workload", Severity: Blocks,
			Title:     "The kubelet refuses a GPU it offered",
			Symptom:   "UnexpectedAdmissionError: Requested: 1, Available: 0",
			Cause:     "the kubelet's record of devices is older than the device plugin's; it repeats on the same node",
			Fix:       []string{"systemctl restart k3s-agent (or k3s) on the node", "delete the refused pods: they never run"},
			Match:     []string{"requested number of devices unavailable", "unexpectedadmissionerror"},
			DependsOn: []Code{"smoke-shared-request", "gpu-unhealthy"},
			Reference: "kubernetes/kubernetes#130145",
		},
		{
			Code: "smoke-shared-request", Area: "workload", Severity: Warns,
			Title:     "More than one unit of a shared GPU was asked for",
			Symptom:   "maximum request size for shared resources is 1",
			Cause:     "units of a shared GPU do not add up to a larger share",
			Fix:       []string{"ask for one unit; for a whole GPU use a node that is not shared"},
			Match:     []string{"maximum request size for shared resources"},
			Reference: "NVIDIA/k8s-device-plugin#929",
		},
		{
			Code: "smoke-timeout", Area: "workload", Severity: Blocks,
			Title:   "The test pod took too long",
			Symptom: "the pod was placed and did not start or end in its time",
			Cause:   "a slow pull of the image, a hanging GPU, or a kubelet that does not answer",
			Fix:     []string{"the error carries the last reason", "gpuctl smoke again: the image is on the node then"},
		},
	}
}
