package host

// Files that gpuctl owns on a machine's operating system.
const (
	// PathModules names the kernel modules that systemd loads at boot.
	PathModules = "/etc/modules-load.d/gpuctl.conf"
	// PathSysctl holds kernel parameters.
	PathSysctl = "/etc/sysctl.d/90-gpuctl.conf"
	// PathUnattended keeps unattended-upgrades away from drivers and kernels.
	PathUnattended = "/etc/apt/apt.conf.d/51gpuctl-unattended"
)
