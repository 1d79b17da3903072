package diag

func sharingProblems() []Problem {
	return []Problem{
		{
			Code: "sharing-refused", Area: "gpu", Severity: Blocks,
			Title:     "NVIDIA rejects this way to share the GPUs",
			Symptom:   "groups[].sharing asks for what the device plugin refuses on these cards",
			Cause:     "MPS takes no MIG devices and a limited number of clients for each GPU; a GPU shared by one pod is not shared; MIG slices are those of the card, and all cards of a machine are cut alike",
			Fix:       []string{"change groups[].sharing in gpuctl.yaml as the evidence says"},
			Reference: "NVIDIA/k8s-device-plugin api/config/v1, cmd/mps-control-daemon",
		},
		{
			Code: "sharing-no-isolation", Area: "gpu", Severity: Warns,
			Title:     "Pods that share a GPU are not kept apart",
			Symptom:   "one pod fills the memory of a GPU, or its fault ends the other pods on it",
			Cause:     "time-slicing isolates neither memory nor faults; MPS isolates memory and no faults",
			Fix:       []string{"share GPUs only between pods that trust each other, and bound the memory each takes", "use MIG where the card has it"},
			Reference: "GPU Operator documentation, GPU sharing",
		},
		{
			Code: "sharing-renamed", Area: "gpu", Severity: Warns,
			Title:     "Shared GPUs have another name",
			Symptom:   "pods that ask for nvidia.com/gpu stay Pending with Insufficient nvidia.com/gpu",
			Cause:     "renameByDefault offers the shares as nvidia.com/gpu.shared and nothing as nvidia.com/gpu",
			Fix:       []string{"ask for nvidia.com/gpu.shared: 1", "or leave renameByDefault out"},
			Reference: "NVIDIA/k8s-device-plugin#1433",
		},
		{
			Code: "sharing-dead-keys", Area: "gpu", Severity: Warns,
			Title:     "Keys of the device plugin's configuration have no effect",
			Symptom:   "GPUs are shared under the old name, or pods get two shares, though the file says otherwise",
			Cause:     "renameByDefault and failRequestsGreaterThanOne act only below sharing.timeSlicing, rename of a resource never; the plugin passes over unknown keys without a word",
			Fix:       []string{"move the keys to sharing.timeSlicing in the ConfigMap", "kubectl -n gpu-operator rollout restart daemonset/nvidia-device-plugin-daemonset"},
			Reference: "NVIDIA/k8s-device-plugin#1433",
		},
		{
			Code: "sharing-absurd", Area: "gpu", Severity: Warns,
			Title:   "Very many pods for one GPU",
			Symptom: "the device plugin takes any number of replicas",
			Cause:   "all of them share one GPU's memory and time, and a node takes 110 pods unless its kubelet is told otherwise",
			Fix:     []string{"check the number in groups[].sharing"},
		},
		{
			Code: "sharing-pods-stay", Area: "gpu", Severity: Warns,
			Title:   "Pods hold GPUs whose sharing changes",
			Symptom: "the named pods run on the node now",
			Cause:   "they keep the GPU they have, and after the change others come beside them",
			Fix:     []string{"let them end first, or drain the node, if they must not share"},
		},
		{
			Code: "sharing-foreign-operator", Area: "gpu", Severity: Warns,
			Title:   "The GPU Operator is not gpuctl's: sharing is left as it is",
			Symptom: "groups[].sharing is set, and the cluster has a GPU Operator that somebody else installed",
			Cause:   "the device plugin's configuration is part of that operator's values",
			Fix:     []string{"set devicePlugin.config in the values of that release"},
		},
		{
			Code: "smoke-shared-uneven", Area: "gpu", Severity: Blocks,
			Title:   "A shared GPU was given to more or fewer pods than planned",
			Symptom: "with all shares held at once, pods saw one GPU too often and another too seldom",
			Cause:   "the device plugin counts other GPUs than the machine has, or runs with another configuration",
			Fix:     []string{"look at the log of nvidia-device-plugin-daemonset on the node", "gpuctl apply sets the configuration again"},
		},
		{
			Code: "smoke-one-too-many", Area: "gpu", Severity: Blocks,
			Title:   "A pod was placed though no share of a GPU was left",
			Symptom: "all shares were held by test pods, and one more pod was placed",
			Cause:   "the node offers more than planned, or shares became free meanwhile",
			Fix:     []string{"compare kubectl describe node with groups[].sharing", "run the test again: gpuctl smoke --nodes NODE"},
		},
	}
}
