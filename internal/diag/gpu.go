package diag

func gpuProblems() []Problem {
	return append(countProblems(), healthProblems()...)
}

func countProblems() []Problem {
	return []Problem{
		{
			Code: "gpu-none", Area: "gpu", Severity: Blocks,
			Title:   "No GPU is on the machine",
			Symptom: "no display controller of NVIDIA (10de) on the PCI bus, though GPUs were promised",
			Cause:   "the wrong machine type, or the provider did not attach them",
			Fix:     []string{"compare the machine type with the order; replace the machine", "a machine without GPUs on purpose: gpus: 0"},
		},
		{
			Code: "gpu-fewer", Area: "gpu", Severity: Blocks,
			Title:   "Fewer GPUs than promised",
			Symptom: "the PCI bus has fewer GPUs than gpuctl.yaml says",
			Cause:   "a broken card was taken out, or another machine type was delivered",
			Fix:     []string{"replace the machine at the provider", "or correct gpus in gpuctl.yaml"},
		},
		{
			Code: "gpu-more", Area: "gpu", Severity: Warns,
			Title:   "More GPUs than promised",
			Symptom: "the PCI bus has more GPUs than gpuctl.yaml says",
			Cause:   "another machine type was delivered",
			Fix:     []string{"check the bill; correct gpus in gpuctl.yaml"},
		},
		{
			Code: "gpu-model-differs", Area: "gpu", Severity: Warns,
			Title:   "Another GPU model than promised",
			Symptom: "gpuModel of gpuctl.yaml is not in the model's name",
			Cause:   "another machine type was delivered",
			Fix:     []string{"check the order; correct gpuModel in gpuctl.yaml"},
		},
		{
			Code: "gpu-other-vendor", Area: "gpu", Severity: Blocks,
			Title:   "The GPUs are not NVIDIA's",
			Symptom: "AMD or Intel accelerators on the PCI bus, none of NVIDIA",
			Cause:   "gpuctl installs NVIDIA's stack only",
			Fix:     []string{"use machines with NVIDIA GPUs", "a machine that should serve without GPUs: gpus: 0"},
		},
		{
			Code: "gpu-passed-through", Area: "gpu", Severity: Blocks,
			Title:     "The GPU is given to a virtual machine",
			Symptom:   "the GPU is bound to vfio-pci",
			Cause:     "the machine is a hypervisor, and the GPU belongs to a guest",
			Fix:       []string{"run gpuctl against the guest", "or unbind it: driverctl unset-override ADDRESS"},
			Reference: "NVIDIA/go-nvlib#110",
		},
		{
			Code: "gpu-too-old", Area: "gpu", Severity: Blocks,
			Title:   "The GPU is too old for this stack",
			Symptom: "a card before Maxwell",
			Cause:   "no driver branch that is still alive supports it",
			Fix:     []string{"use another machine"},
		},
		{
			Code: "gpu-unknown-card", Area: "gpu", Severity: Informs,
			Title:   "A GPU that gpuctl has no data of",
			Symptom: "its PCI id is not in the table of cards",
			Cause:   "a new card",
			Fix:     []string{"nothing; checks of generation and driver branch are left out for it"},
		},
	}
}

func healthProblems() []Problem {
	return []Problem{
		{
			Code: "gpu-lost", Aliases: []string{"E1"}, Area: "gpu", Severity: Blocks,
			Title:     "A GPU does not answer",
			Symptom:   "Unable to determine the device handle; GPU is lost; has fallen off the bus (Xid 79)",
			Cause:     "power, PCIe or hardware; the other GPUs of the machine may fail too",
			Fix:       []string{"reboot the machine", "if it comes back: replace the machine"},
			Match:     []string{"xid 79", "gpu is lost", "fallen off the bus", "unable to determine the device handle"},
			Reference: "NVIDIA/open-gpu-kernel-modules#387",
		},
		{
			Code: "gpu-count-differs", Area: "gpu", Severity: Blocks,
			Title:     "The driver sees fewer GPUs than the PCI bus",
			Symptom:   "nvidia-smi lists fewer GPUs than /sys/bus/pci",
			Cause:     "a GPU failed, or the driver does not support it",
			Fix:       []string{"sudo dmesg | grep NVRM", "reboot; if it stays, replace the machine"},
			DependsOn: []Code{"gpu-lost", "driver-needs-open", "driver-needs-proprietary", "driver-too-old", "driver-too-new", "driver-init-failed"},
		},
		{
			Code: "gpu-needs-reset", Area: "gpu", Severity: Blocks,
			Title:     "A GPU must be reset",
			Symptom:   "[GPU requires reset] in nvidia-smi, or Xid 48, 64, 95, 109, 119, 120, 154 in the kernel log",
			Cause:     "an error the GPU does not recover from by itself",
			Fix:       []string{"drain the node, then sudo nvidia-smi --gpu-reset -i INDEX", "in a virtual machine: reboot"},
			Reference: "https://docs.nvidia.com/deploy/xid-errors/",
		},
		{
			Code: "gpu-xid", Area: "gpu", Severity: Warns,
			Title:     "The kernel log holds errors of a GPU",
			Symptom:   "NVRM: Xid lines that call for a reset, a reboot or the provider",
			Cause:     "hardware or firmware errors since the last boot",
			Fix:       []string{"drain the node and reboot it", "if it comes back: replace the machine; Xid 79 and 74 belong to the provider"},
			Match:     []string{"xid 109"},
			Reference: "https://docs.nvidia.com/deploy/xid-errors/",
		},
		{
			Code: "gpu-busy", Aliases: []string{"E11"}, Area: "gpu", Severity: Warns,
			Title:      "Programs already use the GPUs",
			Symptom:    "nvidia-smi lists compute processes",
			Cause:      "an earlier tenant, a provider's agent, or your own program outside Kubernetes",
			Fix:        []string{"nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv", "stop them: Kubernetes does not know that these GPUs are taken"},
			Unverified: true,
		},
		{
			Code: "fabric-manager-down", Aliases: []string{"C14"}, Area: "gpu", Severity: Blocks,
			Title:     "NVSwitch is there and fabric manager does not run",
			Symptom:   "CUDA error 802: system not yet initialized; nvidia-smi looks perfect",
			Cause:     "HGX boards need nvidia-fabricmanager in exactly the driver's version",
			Fix:       []string{"sudo apt-get install nvidia-fabricmanager-BRANCH=VERSION (the version of nvidia-smi)", "sudo systemctl enable --now nvidia-fabricmanager"},
			Match:     []string{"system not yet initialized"},
			Likely:    []string{"cuda_error_system_not_ready"},
			Reference: "NVIDIA/gpu-operator#375",
		},
		{
			Code: "fabric-manager-version", Aliases: []string{"C15"}, Area: "gpu", Severity: Blocks,
			Title:     "Fabric manager and driver have different versions",
			Symptom:   "fabric manager NVIDIA GPU driver interface version ... don't match with driver version",
			Cause:     "one of the two was upgraded alone",
			Fix:       []string{"install both in one version and hold them: sudo apt-get install nvidia-fabricmanager-BRANCH=VERSION; sudo apt-mark hold nvidia-fabricmanager-BRANCH"},
			Match:     []string{"don't match with driver version"},
			Reference: "dstackai/dstack#2348",
		},
		{
			Code: "fabric-not-ready", Aliases: []string{"C16"}, Area: "gpu", Severity: Blocks,
			Title:     "The NVLink fabric is not ready",
			Symptom:   "Fabric State is In Progress; CUDA error 802 although no NVSwitch is visible",
			Cause:     "the provider's host has not activated the partition; on B200 and B300 also a missing nvlsm",
			Fix:       []string{"where the machine is bare metal: systemctl status nvidia-fabricmanager; install nvlsm and modprobe ib_umad on B200/B300", "in a virtual machine: report it to the provider, replace the machine"},
			DependsOn: []Code{"fabric-manager-down", "fabric-manager-version"},
			Reference: "huggingface/huggingface_hub#4134",
		},
		{
			Code: "mig-pending", Aliases: []string{"D26"}, Area: "gpu", Severity: Warns,
			Title:     "A change of MIG mode waits for a reset",
			Symptom:   "mig.mode.current and mig.mode.pending differ",
			Cause:     "the GPU could not be reset after the change",
			Fix:       []string{"drain the node and reboot it"},
			Match:     []string{"mig mode is in pending"},
			Reference: "NVIDIA/gpu-operator#1606",
		},
		{
			Code: "toolkit-operator-copy", Aliases: []string{"D42"}, Area: "toolkit", Severity: Warns,
			Title:     "A toolkit of the GPU Operator was left behind",
			Symptom:   "/usr/local/nvidia/toolkit/nvidia-container-runtime exists and k3s prefers it",
			Cause:     "the machine was once served by the operator's toolkit container",
			Fix:       []string{"systemctl stop k3s k3s-agent; rm -r /usr/local/nvidia/toolkit; start k3s again"},
			Reference: "k3s-io/k3s#4391",
		},
		{
			Code: "toolkit-newer", Area: "toolkit", Severity: Informs,
			Title:   "The Container Toolkit is newer than the set's",
			Symptom: "nvidia-ctk --version is above the pinned version",
			Cause:   "the machine's image brought it; one that gpuctl put there goes back with the set",
			Fix:     []string{"nothing; to get the set's version: sudo apt-get remove nvidia-container-toolkit-base and gpuctl apply"},
		},
		{
			Code: "second-container-engine", Aliases: []string{"D4"}, Area: "toolkit", Severity: Informs,
			Title:     "A second container engine is on the machine",
			Symptom:   "Docker or a system containerd runs beside k3s's own",
			Cause:     "many GPU images bring Docker; its configuration stays untouched",
			Fix:       []string{"nothing; containers it runs on GPUs are invisible to Kubernetes"},
			Reference: "NVIDIA/nvidia-container-toolkit#982",
		},
	}
}
