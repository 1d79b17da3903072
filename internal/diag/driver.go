package diag

func driverProblems() []Problem {
	return append(append(missingDriverProblems(), packageProblems()...), loadedDriverProblems()...)
}

const driverGuide = "https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/"

func missingDriverProblems() []Problem {
	return []Problem{
		{
			Code: "driver-missing", Area: "driver", Severity: Blocks,
			Title:   "No NVIDIA driver is installed",
			Symptom: "the GPUs are on the PCI bus, there is no nvidia-smi and no kernel module",
			Cause:   "a plain image, and driver.mode is keep",
			Fix: []string{
				"let gpuctl install it: driver.mode auto or package",
				"or use the provider's image with a driver (Lambda Stack, Nebius cuda, Crusoe nvidia-docker, Scaleway GPU OS)",
				"or on Ubuntu: sudo apt-get install linux-headers-$(uname -r) nvidia-driver-580-server-open && sudo reboot",
				"for V100 and older: nvidia-driver-580-server (without -open)",
			},
			Reference: driverGuide,
		},
		{
			Code: "driver-not-loaded", Aliases: []string{"C2"}, Area: "driver", Severity: Blocks,
			Title:     "The NVIDIA driver is installed and not loaded",
			Symptom:   "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver (exit 9)",
			Cause:     "a new kernel without a module built for it, Secure Boot, or nouveau",
			Fix:       []string{"sudo modprobe nvidia; dmesg | tail", "dkms status; sudo dkms autoinstall; sudo apt-get install linux-headers-$(uname -r)"},
			Match:     []string{"nvidia-smi has failed because it couldn't communicate"},
			Likely:    []string{"modprobe: fatal: module nvidia not found"},
			DependsOn: []Code{"nouveau-loaded", "secure-boot-unsigned", "driver-headers-missing"},
			Reference: "lyulyul/shine-cluster#50",
		},
		{
			Code: "driver-library-missing", Area: "driver", Severity: Blocks,
			Title:     "The driver's libraries are missing",
			Symptom:   "NVIDIA-SMI couldn't find libnvidia-ml.so (exit 12)",
			Cause:     "the kernel module is installed without its user-space half",
			Fix:       []string{"sudo apt-get install the nvidia-utils and libnvidia-compute packages of the module's version"},
			Match:     []string{"couldn't find libnvidia-ml.so"},
			Reference: driverGuide,
		},
		{
			Code: "nouveau-loaded", Aliases: []string{"C5"}, Area: "driver", Severity: Blocks,
			Title:   "nouveau holds the GPUs",
			Symptom: "/sys/module/nouveau exists and the GPUs are bound to it; Failed to enable MSI-X",
			Cause:   "stock images load the free driver at boot",
			Fix: []string{
				"printf 'blacklist nouveau\\noptions nouveau modeset=0\\n' | sudo tee /etc/modprobe.d/blacklist-nouveau.conf",
				"sudo update-initramfs -u && sudo reboot",
			},
			Match:     []string{"the nvidia probe routine was not called for", "nouveau, rivafb, nvidiafb or rivatv"},
			Likely:    []string{"failed to enable msi-x"},
			Reference: "NVIDIA/gpu-operator#974",
		},
		{
			Code: "secure-boot-unsigned", Aliases: []string{"C4"}, Area: "driver", Severity: Blocks,
			Title:     "Secure Boot refuses the driver's module",
			Symptom:   "Key was rejected by service; Loading of unsigned module is rejected",
			Cause:     "the module was built on the machine and is not signed with an enrolled key",
			Fix:       []string{"install Ubuntu's signed modules: linux-modules-nvidia-580-server-open-$(uname -r | sed 's/^[0-9.-]*//')", "or turn Secure Boot off at the provider"},
			Match:     []string{"key was rejected by service", "loading of unsigned module is rejected", "required key not available"},
			Reference: "NVIDIA/gpu-operator#1726",
		},
		{
			Code: "driver-runfile", Aliases: []string{"C9"}, Area: "driver", Severity: Informs,
			Title:     "The driver was not installed from packages",
			Symptom:   "/usr/bin/nvidia-uninstall exists",
			Cause:     "NVIDIA's runfile was used; apt does not know of it and cannot keep it in step",
			Fix:       []string{"keep it; before changing to packages run nvidia-uninstall"},
			Reference: "tinygrad/open-gpu-kernel-modules#47",
		},
	}
}

func packageProblems() []Problem {
	return []Problem{
		{
			Code: "driver-cards-mixed", Area: "driver", Severity: Blocks,
			Title:     "No single driver serves all cards of the machine",
			Symptom:   "a card that needs the open kernel modules beside one that needs the proprietary ones, or cards without a common branch",
			Cause:     "one kernel loads one driver: Volta and older run with the proprietary modules up to branch 580, Blackwell and Grace with the open ones",
			Fix:       []string{"split the cards between machines", "or give the machine's older or newer cards to a virtual machine (vfio-pci)"},
			Reference: "NVIDIA/open-gpu-kernel-modules#862",
		},
		{
			Code: "driver-no-package", Area: "driver", Severity: Blocks,
			Title:   "No driver package for this system",
			Symptom: "no candidate in the package lists, after a refresh; or a distribution whose driver packages gpuctl does not know",
			Cause:   "the repository has no such branch for this distribution, or no headers or signed modules for the kernel that runs (a kernel that left the archive)",
			Fix: []string{
				"choose another branch: groups[].driver.branch",
				"or boot a kernel whose headers the archive has: sudo apt-get update && sudo apt-get install linux-generic && sudo reboot",
				"or bring a driver yourself: groups[].driver.mode: keep",
			},
			Match:     []string{"no candidate in the package lists"},
			Reference: driverGuide,
		},
		{
			Code: "driver-reboot-needed", Area: "driver", Severity: Blocks,
			Title:     "The driver needs a reboot that is not allowed",
			Symptom:   "nouveau holds the GPUs, or a module of another version is loaded, and groups[].driver.reboot is never",
			Cause:     "a kernel module that is in use cannot be replaced in a running kernel",
			Fix:       []string{"reboot the machine yourself, then: gpuctl apply", "or allow it: groups[].driver.reboot: allow"},
			Match:     []string{"and driver.reboot is never"},
			Reference: "NVIDIA/k8s-driver-manager#37",
		},
	}
}

func loadedDriverProblems() []Problem {
	return []Problem{
		{
			Code: "driver-version-mismatch", Aliases: []string{"C1", "D12"}, Area: "driver", Severity: Blocks,
			Title:     "The driver was upgraded under a running kernel module",
			Symptom:   "Failed to initialize NVML: Driver/library version mismatch (exit 18)",
			Cause:     "apt or unattended-upgrades replaced the libraries, the old module is still loaded",
			Fix:       []string{"drain the node and reboot it: sudo reboot", "if it stays after the reboot: dpkg -l | grep nvidia, and bring all packages to one version"},
			Match:     []string{"api mismatch: the client has the version", "driver/library version mismatch"},
			Reference: "NVIDIA/k8s-device-plugin#1431",
		},
		{
			Code: "driver-needs-open", Aliases: []string{"C3"}, Area: "driver", Severity: Blocks,
			Title:     "This GPU needs the open kernel modules",
			Symptom:   "No devices were found; dmesg: requires use of the NVIDIA open kernel modules",
			Cause:     "Blackwell and Grace run only with the open modules",
			Fix:       []string{"sudo apt-get install nvidia-driver-580-server-open && sudo reboot"},
			Match:     []string{"requires use of the nvidia open kernel modules"},
			Likely:    []string{"no devices were found"},
			Reference: "NVIDIA/open-gpu-kernel-modules#872",
		},
		{
			Code: "driver-needs-proprietary", Area: "driver", Severity: Blocks,
			Title:     "This GPU needs the proprietary kernel modules",
			Symptom:   "dmesg: is not supported by open nvidia.ko because it does not include the required GPU System Processor (GSP)",
			Cause:     "Volta and older cards have no GSP",
			Fix:       []string{"sudo apt-get install nvidia-driver-580-server (without -open) && sudo reboot"},
			Match:     []string{"not supported by open nvidia.ko", "is not supported by open"},
			Reference: "NVIDIA/nvtrust#55",
		},
		{
			Code: "driver-too-new", Aliases: []string{"C19"}, Area: "driver", Severity: Blocks,
			Title:     "The driver branch no longer supports this GPU",
			Symptom:   "the card is on the PCI bus, the driver does not see it",
			Cause:     "580 is the last branch for Maxwell, Pascal and Volta",
			Fix:       []string{"install branch 580 with proprietary modules and hold it: sudo apt-get install nvidia-driver-580-server && sudo reboot"},
			Reference: "olafkfreund/nixos_config#232",
		},
		{
			Code: "driver-too-old", Area: "driver", Severity: Blocks,
			Title:     "The driver is too old",
			Symptom:   "installed in this system is not supported by the NVIDIA ... driver release; or the card's first driver is newer",
			Cause:     "the release does not know the card; on Hopper also confidential-computing mode",
			Fix:       []string{"install a newer branch: sudo apt-get install nvidia-driver-580-server-open && sudo reboot", "if the driver is new enough: check confidential-computing mode with the provider"},
			Match:     []string{"installed in this system is not supported by the"},
			Reference: "NVIDIA/nvtrust#55",
		},
		{
			Code: "driver-init-failed", Aliases: []string{"C3b"}, Area: "driver", Severity: Blocks,
			Title:     "The driver cannot start the GPU",
			Symptom:   "RmInitAdapter failed, No devices were found",
			Cause:     "large BARs off (Above 4G decoding), wrong passthrough, or firmware trouble: the provider's side",
			Fix:       []string{"reboot once", "then report the lines of dmesg to the provider, or replace the machine"},
			Match:     []string{"rminitadapter failed"},
			Likely:    []string{"no devices were found"},
			DependsOn: []Code{"driver-needs-open", "driver-needs-proprietary", "driver-too-old"},
			Reference: "NVIDIA/open-gpu-kernel-modules#862",
		},
		{
			Code: "nvidia-smi-hangs", Area: "driver", Severity: Blocks,
			Title:     "nvidia-smi does not answer",
			Symptom:   "no answer within 45 seconds",
			Cause:     "a GPU or its firmware hangs; or many GPUs without nvidia-persistenced",
			Fix:       []string{"sudo dmesg | grep -i xid", "enable nvidia-persistenced, reboot, else replace the machine"},
			Reference: "NVIDIA/open-gpu-kernel-modules#1045",
		},
		{
			Code: "uvm-missing", Aliases: []string{"C12"}, Area: "driver", Severity: Warns,
			Title:      "The unified memory module is not loaded",
			Symptom:    "/dev/nvidia-uvm is missing; CUDA error 999",
			Cause:      "nothing loads nvidia-uvm on a headless machine",
			Fix:        []string{"sudo nvidia-modprobe -u -c 0", "echo nvidia-uvm | sudo tee /etc/modules-load.d/nvidia-uvm.conf"},
			Likely:     []string{"nvidia-uvm: no such file"},
			Unverified: true,
		},
		{
			Code: "driver-mode-unsupported", Area: "driver", Severity: Blocks,
			Title:   "The GPU Operator cannot bring a driver where one is",
			Symptom: "driver.mode is operator and the machine has a driver of its own",
			Cause:   "the operator skips a node with a host driver, and its toolkit and driver pods wait in vain",
			Fix: []string{
				"keep the machine's driver: groups[].driver.mode: auto or keep",
				"or remove it first: sudo apt-get purge 'nvidia-*' 'libnvidia-*' && sudo reboot",
			},
			Reference: "https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/getting-started.html",
		},
	}
}
