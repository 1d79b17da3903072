package diag

const xidDocs = "https://docs.nvidia.com/deploy/xid-errors/"

// conditionProblems are GPUs that work badly, seen in the kernel log, in
// nvidia-smi's answers and in what Kubernetes counts.
func conditionProblems() []Problem {
	return append(xidProblems(), stateProblems()...)
}

func xidProblems() []Problem {
	return []Problem{
		{
			Code: "gpu-ecc-uncorrected", Aliases: []string{"E2"}, Area: "gpu", Severity: Warns,
			Title:     "A GPU had a memory error it could not correct",
			Symptom:   "Xid 48 or 95; volatile uncorrectable ECC errors",
			Cause:     "a failing cell of the GPU's memory",
			Fix:       []string{"drain the node; sudo nvidia-smi --gpu-reset -i INDEX, in a virtual machine reboot", "if it repeats: replace the machine"},
			Match:     []string{"double bit error", "xid 48", "xid 95", "double bit ecc"},
			Reference: xidDocs,
		},
		{
			Code: "gpu-remap-failed", Aliases: []string{"E3"}, Area: "gpu", Severity: Warns,
			Title:     "A GPU has no spare memory rows left",
			Symptom:   "Xid 64; Remapping Failure Occurred: Yes",
			Cause:     "a row could not be remapped; Xid 63 alone is a remap that waits for the next reset",
			Fix:       []string{"nvidia-smi -q -d ROW_REMAPPER", "replace the machine"},
			Match:     []string{"xid 64"},
			Reference: xidDocs,
		},
		{
			Code: "gpu-ecc-contained", Aliases: []string{"E4"}, Area: "gpu", Severity: Informs,
			Title:      "A memory error of a GPU hit one program",
			Symptom:    "Xid 94 (contained), or Xid 63 (row remapped)",
			Cause:      "the error was confined to the program that used the memory",
			Fix:        []string{"restart the program; reset the GPU when it is idle"},
			Match:      []string{"xid 63", "xid 94"},
			Reference:  "leptonai/gpud#46",
			Unverified: true,
		},
		{
			Code: "gpu-nvlink-error", Aliases: []string{"E5"}, Area: "gpu", Severity: Warns,
			Title:      "NVLink reports errors",
			Symptom:    "Xid 74, or 145 and 149 with the word Fatal",
			Cause:      "a link between GPUs or to a switch failed",
			Fix:        []string{"nvidia-smi nvlink -e; systemctl status nvidia-fabricmanager", "reset or reboot; if it repeats, replace the machine"},
			Match:      []string{"xid 145", "xid 149", "xid 74"},
			Reference:  "leptonai/gpud#1174",
			Unverified: true,
		},
		{
			Code: "gpu-gsp-timeout", Aliases: []string{"E6"}, Area: "gpu", Severity: Warns,
			Title:     "The GPU's own processor does not answer the driver",
			Symptom:   "Xid 119 or 120; Timeout waiting for RPC from GSP",
			Cause:     "the firmware of the GPU hangs",
			Fix:       []string{"reset the GPU or reboot", "if it repeats: a newer driver"},
			Match:     []string{"waiting for rpc response from gpu", "xid 119", "xid 120"},
			Reference: "NVIDIA/open-gpu-kernel-modules#1045",
		},
		{
			Code: "gpu-recovery-needed", Aliases: []string{"E7"}, Area: "gpu", Severity: Warns,
			Title:     "The driver asks for a recovery of a GPU",
			Symptom:   "Xid 154: GPU recovery action changed to GPU Reset Required, Node Reboot Required, Drain and Reset",
			Cause:     "an earlier error the GPU does not leave by itself",
			Fix:       []string{"do what the line says: drain, then reset the GPU or reboot"},
			Match:     []string{"xid 154", "gpu recovery action changed"},
			Reference: "NVIDIA/open-gpu-kernel-modules#1045",
		},
		{
			Code: "gpu-application-xid", Aliases: []string{"E8"}, Area: "gpu", Severity: Informs,
			Title:     "A program made a fault on a GPU",
			Symptom:   "Xid 13, 31, 32, 43, 45, 68, 69 and others for which NVIDIA asks to start the program again",
			Cause:     "an error of the program; the GPU is well",
			Fix:       []string{"tell the owner of the process the line names; the node may stay"},
			Match:     []string{"xid 13", "xid 31", "xid 43", "xid 45", "xid 68"},
			Reference: "https://github.com/NVIDIA/k8s-device-plugin#readme",
		},
		{
			Code: "gpu-module-flavour-xid", Aliases: []string{"E9"}, Area: "gpu", Severity: Warns,
			Title:     "Xid 169: the module's flavour is wrong for this board",
			Symptom:   "Xid 169 on GB10",
			Cause:     "the proprietary modules run on a board made for the open ones",
			Fix:       []string{"install the open flavour of the same branch and reboot"},
			Match:     []string{"xid 169"},
			DependsOn: []Code{"driver-needs-open"},
			Reference: "Start9Labs/start-os#3693",
		},
	}
}

func stateProblems() []Problem {
	return []Problem{
		{
			Code: "gpu-throttled", Aliases: []string{"E10"}, Area: "gpu", Severity: Warns,
			Title:      "A GPU runs slower than it could",
			Symptom:    "nvidia-smi -q -d PERFORMANCE: HW Thermal Slowdown or Power Brake is Active",
			Cause:      "heat, or a power limit of the host",
			Fix:        []string{"report it to the provider"},
			Likely:     []string{"hw thermal slowdown", "hw power brake slowdown"},
			Unverified: true,
		},
		{
			Code: "gpu-pcie-slow", Aliases: []string{"E12"}, Area: "gpu", Severity: Warns,
			Title:      "A GPU's PCIe link is narrow",
			Symptom:    "link width x1 or generation 1 under load",
			Cause:      "a riser card or the way the GPU is passed into the machine",
			Fix:        []string{"nvidia-smi --query-gpu=pcie.link.gen.current,pcie.link.width.current --format=csv under load", "ask the provider"},
			Unverified: true,
		},
		{
			Code: "gpu-unhealthy", Aliases: []string{"D19"}, Area: "gpu", Severity: Blocks,
			Title:     "Kubernetes counts fewer usable GPUs than the node has",
			Symptom:   "allocatable is below capacity",
			Cause:     "the device plugin saw an Xid and marked the GPU unhealthy; it stays so until the plugin restarts",
			Fix:       []string{"gpuctl doctor --cordon --report FILE says which and keeps pods away", "sudo dmesg | grep -i xid on the node", "once the GPU is well again: kubectl -n gpu-operator delete pod -l app=nvidia-device-plugin-daemonset --field-selector spec.nodeName=NODE"},
			Match:     []string{"marked unhealthy"},
			DependsOn: []Code{"node-not-ready", "gpu-lost", "gpu-ecc-uncorrected", "gpu-gsp-timeout", "gpu-nvlink-error", "gpu-recovery-needed", "gpu-needs-reset"},
			Reference: "NVIDIA/k8s-device-plugin#403",
		},
		{
			Code: "gpu-lost-blocks-all", Aliases: []string{"D23"}, Area: "gpu", Severity: Blocks,
			Title:     "One lost GPU keeps all others from being given out",
			Symptom:   "GetPreferredAllocation fails: GPU is lost",
			Cause:     "the device plugin asks every GPU before it gives one",
			Fix:       []string{"drain the node and replace the machine, or take the GPU out"},
			Match:     []string{"getpreferredallocation"},
			Reference: "NVIDIA/k8s-device-plugin#231",
		},
		{
			Code: "gpu-unified-memory", Aliases: []string{"A23"}, Area: "gpu", Severity: Informs,
			Title:     "GPU and processor share their memory",
			Symptom:   "GB10 tells no memory size; GH200 and GB200 show more memory than the host has",
			Cause:     "GPU memory is a NUMA node of the machine",
			Fix:       []string{"nothing for a single machine", "GH200, GB200: driver option CoherentGPUMemoryMode=driver from branch 580"},
			Reference: operatorNotes,
		},
		{
			Code: "gpu-models-mixed", Area: "gpu", Severity: Informs,
			Title:   "The machine has GPUs of several models",
			Symptom: "nvidia-smi -L lists different names",
			Cause:   "the board was built that way",
			Fix:     []string{"nothing; pods cannot choose between them by nvidia.com/gpu alone"},
		},
		{
			Code: "driver-packages-mixed", Area: "driver", Severity: Warns,
			Title:     "The driver's packages have several versions",
			Symptom:   "the module on disk and the library differ: a reboot does not mend the mismatch",
			Cause:     "an upgrade that was cut off, or packages of two repositories",
			Fix:       []string{"dpkg -l | grep -E 'nvidia|cuda-drivers'", "bring all to one version, hold them, then reboot"},
			Reference: "illinois-scicomp/machine-shop-maintenance#70",
		},
		{
			Code: "driver-not-held", Area: "driver", Severity: Informs,
			Title:     "The driver can be upgraded under running pods",
			Symptom:   "unattended-upgrades is active and the driver's packages are not held",
			Cause:     "the image's default",
			Fix:       []string{"gpuctl apply keeps unattended-upgrades away from them", "by hand: sudo apt-mark hold PACKAGES"},
			Reference: "pando85/homelab#4110",
		},
		{
			Code: "persistence-off", Area: "driver", Severity: Informs,
			Title:     "The driver forgets its GPUs when nobody uses them",
			Symptom:   "persistence mode is Disabled and nvidia-persistenced does not run; nvidia-smi takes long",
			Cause:     "the daemon is not enabled",
			Fix:       []string{"sudo systemctl enable --now nvidia-persistenced"},
			Reference: driverGuide,
		},
	}
}
