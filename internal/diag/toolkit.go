package diag

// toolkitProblems are failures of the Container Toolkit and of giving GPUs to containers.
func toolkitProblems() []Problem {
	return append(wiringProblems(), injectionProblems()...)
}

func wiringProblems() []Problem {
	return []Problem{
		{
			Code: "runtime-not-configured", Aliases: []string{"D1"}, Area: "toolkit", Severity: Blocks,
			Title:     "containerd does not know the nvidia runtime",
			Symptom:   `no runtime for "nvidia" is configured`,
			Cause:     "k3s started before the toolkit was installed, the toolkit was removed, or another containerd was configured",
			Fix:       []string{"gpuctl apply", "by hand: nvidia-container-runtime --version; then systemctl restart k3s-agent (or k3s)"},
			Match:     []string{`no runtime for "nvidia" is configured`, "no runtime for \\\"nvidia\\\""},
			DependsOn: []Code{"runtime-binary-missing", "containerd-config-broken"},
			Reference: "NVIDIA/k8s-device-plugin#479",
		},
		{
			Code: "runtime-binary-missing", Area: "toolkit", Severity: Warns,
			Title:     "The nvidia runtime that containerd names does not exist",
			Symptom:   "BinaryName of config.toml points to a missing file",
			Cause:     "the toolkit was removed or moved under a running k3s",
			Fix:       []string{"gpuctl apply: installs the toolkit and restarts k3s"},
			Reference: "k3s-io/k3s#4391",
		},
		{
			Code: "toolkit-no-package", Area: "toolkit", Severity: Blocks,
			Title:   "The package lists lack the wanted Container Toolkit",
			Symptom: "the package lists have no nvidia-container-toolkit=VERSION, after a refresh",
			Cause:   "the mirror is older than the set, or the version in gpuctl.yaml does not exist; another version is not taken instead",
			Fix: []string{
				"apt-cache madison nvidia-container-toolkit",
				"refresh the mirror of sources.packages, or name a version that it has: gpu.toolkit.version",
			},
			Match:     []string{"the package lists have no nvidia-container-toolkit"},
			Reference: "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html",
		},
		{
			Code: "mount-not-shared", Area: "toolkit", Severity: Blocks,
			Title:     "The machine's root mount is not shared",
			Symptom:   "pods of the operator stay in CreateContainerError: ... but it is not a shared or slave mount",
			Cause:     "mounts are private: a container that stands for a machine, or mount --make-rprivate; systemd shares them at boot",
			Fix:       []string{"on the machine: sudo mount --make-rshared /", "in containers of k3d and Docker: a boot unit that does so"},
			Match:     []string{"not a shared or slave mount", "not a shared mount"},
			Reference: "https://kubernetes.io/docs/concepts/storage/volumes/#mount-propagation",
		},
		{
			Code: "toolkit-incomplete", Area: "toolkit", Severity: Warns,
			Title:     "Part of the Container Toolkit is missing",
			Symptom:   "nvidia-ctk is there, nvidia-container-runtime or nvidia-cdi-hook is not",
			Cause:     "only nvidia-container-toolkit-base, or a release before 1.18, is installed",
			Fix:       []string{"gpuctl apply", "sudo apt-get install nvidia-container-toolkit"},
			Reference: "https://github.com/NVIDIA/nvidia-container-toolkit",
		},
		{
			Code: "toolkit-containerd-dump", Aliases: []string{"D3"}, Area: "toolkit", Severity: Warns,
			Title:     "Toolkit 1.17.0 cannot read containerd's configuration",
			Symptom:   "the toolkit pod fails: containerd config dump",
			Cause:     "that release calls containerd, which k3s does not put on the PATH",
			Fix:       []string{"toolkit 1.17.1 or later (operator 24.9.1)"},
			Match:     []string{"containerd config dump"},
			Reference: "NVIDIA/gpu-operator#1109",
		},
		{
			Code: "toolkit-other-containerd", Area: "toolkit", Severity: Warns,
			Title:     "The operator's toolkit configures another containerd than the cluster's",
			Symptom:   "CONTAINERD_SOCKET and CONTAINERD_CONFIG of its daemonset point at different engines, or the socket alone is named on a machine with Docker",
			Cause:     "values that name k3s's socket and leave its configuration out: the toolkit asks the containerd on the PATH, Docker's, for its file and edits /etc/containerd/config.toml, which breaks Docker at its next start",
			Fix:       []string{"gpu.operator.values: toolkit.env with both CONTAINERD_SOCKET=/run/k3s/containerd/containerd.sock and CONTAINERD_CONFIG=/var/lib/rancher/k3s/agent/etc/containerd/config.toml", "or toolkit.enabled: false with the toolkit on the machines, as gpuctl does", "compare /etc/containerd/config.toml with its package's: a nvidia table in it is not Docker's"},
			Reference: "NVIDIA/nvidia-container-toolkit#982",
		},
		{
			Code: "toolkit-writes-nowhere", Area: "toolkit", Severity: Informs,
			Title:     "The operator's toolkit was told to write no configuration",
			Symptom:   "CONTAINERD_CONFIG=/dev/null in its daemonset",
			Cause:     "a workaround: k3s finds the toolkit's runtime by itself when it starts, and nothing else is edited; new toolkit settings never reach containerd",
			Fix:       []string{"nothing while GPUs work; a toolkit on the machine and toolkit.enabled: false need no workaround"},
			Reference: "NVIDIA/nvidia-container-toolkit#982",
		},
		{
			Code: "toolkit-cni-replaced", Aliases: []string{"D5"}, Area: "toolkit", Severity: Warns,
			Title:     "Pods lose their network after the toolkit ran",
			Symptom:   "cni plugin not found",
			Cause:     "a toolkit container of release 1.18 wrote its own CNI directories",
			Fix:       []string{"toolkit.env: RUNTIME_CONFIG_SOURCE=file, or toolkit.enabled: false on k3s"},
			Likely:    []string{"failed to find plugin \"bridge\" in path", "failed to find plugin \"flannel\" in path"},
			Reference: "NVIDIA/nvidia-container-toolkit#1222",
		},
		{
			Code: "toolkit-imports-replaced", Aliases: []string{"D6"}, Area: "toolkit", Severity: Warns,
			Title:     "Toolkit 1.18.0 drops other imports of containerd",
			Symptom:   "drop-ins of other programs have no effect",
			Cause:     "that release overwrites the imports line",
			Fix:       []string{"toolkit 1.18.1 or later"},
			Reference: "NVIDIA/nvidia-container-toolkit#1222",
		},
	}
}

func injectionProblems() []Problem {
	return []Problem{
		{
			Code: "nvml-lost", Aliases: []string{"D8"}, Area: "toolkit", Severity: Warns,
			Title:     "Running containers lost their GPU",
			Symptom:   "Failed to initialize NVML: Unknown Error, in a pod, after systemctl daemon-reload",
			Cause:     "systemd applied its own device rules again; the container's GPU was added behind its back",
			Fix:       []string{"delete the pod: its next container has the GPU again", "for good: gpu.runtimePath: cdi"},
			Match:     []string{"failed to initialize nvml: unknown error"},
			Reference: "NVIDIA/nvidia-container-toolkit#48",
		},
		{
			Code: "nvml-permissions", Aliases: []string{"D9"}, Area: "toolkit", Severity: Warns,
			Title:     "SELinux keeps containers from the GPU",
			Symptom:   "Failed to initialize NVML: Insufficient Permissions",
			Cause:     "the device files have another label than containers may use",
			Fix:       []string{"sudo ausearch -m avc -ts recent", "install the policy, or set the pod's SELinux options"},
			Match:     []string{"failed to initialize nvml: insufficient permissions"},
			Reference: toolkitHelp,
		},
		{
			Code: "user-namespace-pod", Aliases: []string{"D10"}, Area: "toolkit", Severity: Warns,
			Title:     "GPU pods cannot have their own user namespace",
			Symptom:   "read status from sync socket",
			Cause:     "the pod has hostUsers: false",
			Fix:       []string{"take hostUsers: false out of the pod"},
			Match:     []string{"read status from sync socket"},
			Reference: "NVIDIA/nvidia-container-toolkit#648",
		},
		{
			Code: "toolkit-timeout", Aliases: []string{"D11"}, Area: "toolkit", Severity: Blocks,
			Title:     "The driver does not answer the toolkit in time",
			Symptom:   "nvidia-container-cli: initialization error: driver rpc error: timed out",
			Cause:     "a hanging GPU, or many GPUs that must wake up without nvidia-persistenced",
			Fix:       []string{"time nvidia-smi; sudo dmesg | grep -i xid", "sudo systemctl enable --now nvidia-persistenced; reboot"},
			Match:     []string{"driver rpc error: timed out"},
			DependsOn: []Code{"gpu-lost", "nvidia-smi-hangs"},
			Reference: operatorHelp,
		},
		{
			Code: "cuda-insufficient", Aliases: []string{"D14"}, Area: "toolkit", Severity: Blocks,
			Title:     "CUDA finds no driver that is new enough",
			Symptom:   "CUDA driver version is insufficient for CUDA runtime version",
			Cause:     "the driver's libraries are not in the container (no runtime class, CDI off), or the driver is too old for the image",
			Fix:       []string{"nvidia-smi in the pod: if it is missing, runtimeClassName: nvidia or gpu.runtimePath: cdi", "else compare the image's CUDA with the driver: major 11 needs 450.80.02, 12 525.60.13, 13 580.65.06"},
			Match:     []string{"cuda driver version is insufficient"},
			DependsOn: []Code{"image-needs-newer-driver"},
			Reference: "NVIDIA/gpu-operator#415",
		},
		{
			Code: "driver-cuda-major", Area: "driver", Severity: Informs,
			Title:     "The driver does not run images of every CUDA generation",
			Symptom:   "images of CUDA 13 (or 12) do not start on this node",
			Cause:     "each CUDA major needs a least driver: 11 450.80.02, 12 525.60.13, 13 580.65.06",
			Fix:       []string{"use images of the older CUDA, or a newer driver branch where the card allows it"},
			Reference: "https://docs.nvidia.com/deploy/cuda-compatibility/",
		},
		{
			Code: "image-brings-driver", Aliases: []string{"D41"}, Area: "workload", Severity: Warns,
			Title:      "The image brings its own driver libraries",
			Symptom:    "a version mismatch in one image only",
			Cause:      "libcuda or libnvidia-ml of the image hide the injected ones",
			Fix:        []string{"ldconfig -p | grep -E 'libcuda|nvidia-ml' and LD_LIBRARY_PATH in the container", "rebuild the image without a driver"},
			Unverified: true,
		},
	}
}
