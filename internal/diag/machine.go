package diag

func machineProblems() []Problem {
	return append(systemProblems(), identityProblems()...)
}

func systemProblems() []Problem {
	return []Problem{
		{
			Code: "container-not-vm", Aliases: []string{"A1"}, Area: "machine", Severity: Blocks,
			Title:     "The rented machine is a container without the rights Kubernetes needs",
			Symptom:   "no systemd, modprobe and mount are refused, cgroups are read-only",
			Cause:     "some providers rent containers by default (RunPod pods, Vast.ai instances)",
			Fix:       []string{"rent a virtual machine or bare metal instead (Vast.ai: the VM template)"},
			Reference: "vllm-project/production-stack#357",
		},
		{
			Code: "no-systemd", Area: "machine", Severity: Blocks,
			Title:   "The machine is not run by systemd",
			Symptom: "process 1 is not systemd",
			Cause:   "gpuctl installs k3s as a systemd unit",
			Fix:     []string{"use an image with systemd (Ubuntu 22.04 or 24.04, Debian 12)"},
		},
		{
			Code: "os-unsupported", Area: "machine", Severity: Blocks,
			Title:     "The operating system is not supported",
			Symptom:   "neither Ubuntu, Debian nor one built on them",
			Cause:     "the driver's and toolkit's packages are installed by apt in this release",
			Fix:       []string{"use an image with Ubuntu 22.04 or 24.04, or Debian 12"},
			Reference: "https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/platform-support.html",
		},
		{
			Code: "architecture-unsupported", Area: "machine", Severity: Blocks,
			Title:   "There is no k3s for this processor",
			Symptom: "uname -m says neither x86_64 nor aarch64",
			Cause:   "k3s and the NVIDIA stack are built for amd64 and arm64",
			Fix:     []string{"use another machine"},
		},
		{
			Code: "cloud-init-running", Aliases: []string{"A7"}, Area: "machine", Severity: Informs,
			Title:     "The machine is still setting itself up",
			Symptom:   "cloud-init status: running",
			Cause:     "packages and users still change",
			Fix:       []string{"gpuctl apply waits for it", "to watch: cloud-init status --wait --long"},
			Reference: "ansible/ansible#51663",
		},
		{
			Code: "package-lock-held", Aliases: []string{"A6"}, Area: "machine", Severity: Informs,
			Title:     "Another process installs packages",
			Symptom:   "Could not get lock /var/lib/dpkg/lock-frontend",
			Cause:     "unattended-upgrades, apt-daily or a first-boot script",
			Fix:       []string{"gpuctl apply waits for it; never kill dpkg or remove its lock files", "to see it: systemctl status apt-daily-upgrade unattended-upgrades"},
			Match:     []string{"could not get lock /var/lib/dpkg", "could not get lock /var/lib/apt", "unable to acquire the dpkg frontend lock", "unable to lock directory /var/lib/apt/lists"},
			Reference: "cilium/packer-ci-build#315",
		},
		{
			Code: "dpkg-interrupted", Aliases: []string{"A8"}, Area: "machine", Severity: Blocks,
			Title:     "An earlier installation was cut off",
			Symptom:   "dpkg was interrupted, you must manually run 'dpkg --configure -a'",
			Cause:     "a package installation was killed, or the disk was full",
			Fix:       []string{"sudo dpkg --configure -a", "sudo apt-get -f install"},
			Match:     []string{"dpkg was interrupted", "dpkg --configure -a"},
			Reference: "skypilot-org/skypilot",
		},
		{
			Code: "apt-sources-conflict", Aliases: []string{"A9"}, Area: "machine", Severity: Blocks,
			Title:     "Two package sources of NVIDIA contradict each other",
			Symptom:   "E: Conflicting values set for option Signed-By",
			Cause:     "two files in /etc/apt/sources.list.d name nvidia.github.io with different keys",
			Fix:       []string{"grep -l nvidia.github.io /etc/apt/sources.list.d/*", "remove the file that is not gpuctl-nvidia.list"},
			Match:     []string{"conflicting values set for option signed-by"},
			Reference: "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/troubleshooting.html",
		},
		{
			Code: "package-missing", Area: "machine", Severity: Blocks,
			Title:   "The package repository has not the version of the set",
			Symptom: "E: Version '...' for '...' was not found; E: Unable to locate package",
			Cause:   "the mirror lacks the version, or its index was not fetched",
			Fix:     []string{"apt-get update; apt-cache madison nvidia-container-toolkit", "name a version that is there in gpu.toolkit.version, or correct sources.packages"},
			Match:   []string{"unable to locate package", "was not found", "has no installation candidate"},
		},
		{
			Code: "package-key-mismatch", Area: "machine", Severity: Blocks,
			Title:   "The package repository's key is not the pinned one",
			Symptom: "the fingerprint of gpgkey differs",
			Cause:   "a mirror or a proxy serves another key; or NVIDIA changed it and the set is old",
			Fix:     []string{"compare the fingerprint with NVIDIA's documentation", "a mirror with a key of its own needs a set file that names its fingerprint"},
		},
		{
			Code: "kernel-module-missing", Aliases: []string{"A19"}, Area: "machine", Severity: Blocks,
			Title:     "The kernel lacks a module that Kubernetes needs",
			Symptom:   "modprobe: FATAL: Module br_netfilter not found",
			Cause:     "a minimal kernel without the extra modules",
			Fix:       []string{"sudo apt-get install linux-modules-extra-$(uname -r)"},
			Match:     []string{"modprobe: fatal: module overlay not found", "modprobe: fatal: module br_netfilter not found"},
			Reference: "k3s-io/k3s#12806",
		},
		{
			Code: "disk-too-small", Aliases: []string{"A13"}, Area: "machine", Severity: Warns,
			Title:     "The disk is too small for GPU images",
			Symptom:   "no space left on device, DiskPressure",
			Cause:     "the root disk of many images has 20 to 50 GB; large disks arrive unmounted",
			Fix:       []string{"mount the large disk and set dataDir to a directory on it", "to see the disks: lsblk; df -h / /var/lib"},
			Match:     []string{"no space left on device", "freediskspacefailed"},
			Reference: "https://docs.k3s.io/installation/requirements",
		},
		{
			Code: "memory-small", Area: "machine", Severity: Warns,
			Title:     "The machine has little memory",
			Symptom:   "less than 2 GiB on a server, 512 MiB on an agent",
			Cause:     "k3s's own minimum",
			Fix:       []string{"use a larger machine"},
			Reference: "https://docs.k3s.io/installation/requirements",
		},
		{
			Code: "swap-present", Aliases: []string{"A22"}, Area: "machine", Severity: Informs,
			Title:      "The machine swaps",
			Symptom:    "swapon --show lists a device",
			Cause:      "k3s tolerates swap, but memory limits then mean less",
			Fix:        []string{"on training nodes: swapoff -a, and remove it from /etc/fstab"},
			Unverified: true,
		},
		{
			Code: "reboot-pending", Aliases: []string{"A21"}, Area: "machine", Severity: Warns,
			Title:     "The machine waits for a reboot",
			Symptom:   "/var/run/reboot-required exists",
			Cause:     "a kernel or driver was upgraded; after the next boot another one runs",
			Fix:       []string{"reboot now, before pods run on it"},
			Reference: "https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/platform-support.html",
		},
		{
			Code: "foreign-kubernetes", Area: "machine", Severity: Blocks,
			Title:     "Another Kubernetes is on the machine",
			Symptom:   "microk8s, RKE2, k0s or a kubelet of kubeadm runs or left its data",
			Cause:     "the image came with it, or the machine was a node of another cluster",
			Fix:       []string{"remove it by its own means (snap remove --purge microk8s; rke2-uninstall.sh; k0s reset; kubeadm reset)", "or use a fresh machine"},
			Reference: "canonical/microk8s#4347",
		},
		{
			Code: "foreign-cni", Area: "machine", Severity: Warns,
			Title:   "Network configuration of another Kubernetes was left behind",
			Symptom: "files in /etc/cni/net.d",
			Cause:   "an earlier cluster; k3s does not read them",
			Fix:     []string{"rm /etc/cni/net.d/* if no container engine on the machine needs them"},
		},
	}
}

func identityProblems() []Problem {
	return []Problem{
		{
			Code: "hostname-duplicate", Aliases: []string{"A15"}, Area: "machine", Severity: Informs,
			Title:     "Two machines have the same host name",
			Symptom:   "localhost, ubuntu or a cloned image's name on several machines",
			Cause:     "cloned images; gpuctl gives each node its own name from gpuctl.yaml",
			Fix:       []string{"nothing for the cluster; for people: hostnamectl set-hostname NAME"},
			Reference: "https://docs.k3s.io/installation/requirements",
		},
		{
			Code: "machine-id-duplicate", Aliases: []string{"A16"}, Area: "machine", Severity: Warns,
			Title:      "Two machines have the same identity",
			Symptom:    "/etc/machine-id or the DMI product UUID is equal",
			Cause:      "cloned images; DHCP servers may give both the same address",
			Fix:        []string{"rm /etc/machine-id; systemd-machine-id-setup; reboot"},
			Unverified: true,
		},
		{
			Code: "machine-listed-twice", Area: "machine", Severity: Blocks,
			Title:   "Two entries of gpuctl.yaml lead to one machine",
			Symptom: "boot id and machine id of two entries are equal",
			Cause:   "the same machine stands in the list by two addresses",
			Fix:     []string{"remove one of the two entries"},
		},
		{
			Code: "address-duplicate", Area: "machine", Severity: Warns,
			Title:   "Two machines have the same address",
			Symptom: "an address is on the interfaces of both",
			Cause:   "machines behind different NATs, or bridges of container engines",
			Fix:     []string{"set privateAddress of both, or network.useAddress: public"},
		},
		{
			Code: "probe-incomplete", Area: "machine", Severity: Warns,
			Title:   "Part of the machine could not be looked at",
			Symptom: "a section of the probe timed out or was refused",
			Cause:   "a command on the machine hangs, or root rights are limited",
			Fix:     []string{"run the command named in the evidence by hand on the machine"},
		},
	}
}
