// Package host looks at a machine, says what is wrong with it as a place for
// Kubernetes and GPUs, and prepares its operating system.
//
// Probe brings everything back in one command. Parse, Findings, CrossFindings
// and Plan are pure.
package host

import "time"

// Facts is everything the probe saw of one machine. Each field stands for one
// section of the probe, which succeeds or fails by itself.
type Facts struct {
	OS        Fact[OS]        `json:"os"`
	System    Fact[System]    `json:"system"`
	Clock     Fact[Clock]     `json:"clock"`
	Abilities Fact[Abilities] `json:"abilities"`
	Memory    Fact[Memory]    `json:"memory"`
	Disks     Fact[Disks]     `json:"disks"`
	// DataDisk is the disk that was asked for; absent where it is no disk, or none was asked for.
	DataDisk Fact[DataDisk]          `json:"dataDisk"`
	Modules  Fact[map[string]Module] `json:"modules"`
	// Sysctls maps dotted names ("fs.inotify.max_user_instances") to values; names the kernel lacks are not in it.
	Sysctls    Fact[map[string]string] `json:"sysctls"`
	Network    Fact[Network]           `json:"network"`
	Firewall   Fact[Firewall]          `json:"firewall"`
	Ports      Fact[[]Listener]        `json:"ports"`
	CloudInit  Fact[string]            `json:"cloudInit"`
	Packages   Fact[Packages]          `json:"packages"`
	SecureBoot Fact[bool]              `json:"secureBoot"`
	PCI        Fact[[]PCIDevice]       `json:"pci"`
	Driver     Fact[Driver]            `json:"driver"`
	SMI        Fact[SMI]               `json:"smi"`
	Fabric     Fact[Fabric]            `json:"fabric"`
	Toolkit    Fact[Toolkit]           `json:"toolkit"`
	K3s        Fact[K3s]               `json:"k3s"`
	// Files are the paths that were asked for plus DefaultFiles; a path that does not exist is not in it.
	Files Fact[map[string]File] `json:"files"`
	// Others are Kubernetes distributions and container engines that are not k3s.
	Others    Fact[[]Other]     `json:"others"`
	KernelLog Fact[[]KernelMsg] `json:"kernelLog"`
}

// OS is /etc/os-release, see os-release(5).
type OS struct {
	ID         string   `json:"id"`
	Like       []string `json:"like,omitempty"`
	VersionID  string   `json:"versionID,omitempty"`
	Codename   string   `json:"codename,omitempty"`
	PrettyName string   `json:"prettyName,omitempty"`
	// BaseID and BaseVersion are the distribution that a derivative is built on
	// ("ubuntu" "24.04" for Linux Mint 22), equal to ID and VersionID for a base itself.
	BaseID      string `json:"baseID,omitempty"`
	BaseVersion string `json:"baseVersion,omitempty"`
	// Family is "debian", "rhel", "suse" or "" where it is not known.
	Family string `json:"family,omitempty"`
}

// System identifies the machine and its running kernel.
type System struct {
	Kernel      string `json:"kernel"`
	Arch        string `json:"arch"` // as uname -m says it: x86_64, aarch64
	Hostname    string `json:"hostname"`
	MachineID   string `json:"machineID,omitempty"`
	ProductUUID string `json:"productUUID,omitempty"`
	Vendor      string `json:"vendor,omitempty"`
	Product     string `json:"product,omitempty"`
	// BootID changes with every boot (/proc/sys/kernel/random/boot_id).
	BootID string `json:"bootID"`
	// Init is the command name of PID 1: "systemd".
	Init string `json:"init"`
	// UptimeSeconds is whole seconds since boot.
	UptimeSeconds int64 `json:"uptimeSeconds"`
	// UID is the user the probe ran as (0 when sudo worked); Login is the user who logged in.
	UID            int    `json:"uid"`
	Login          string `json:"login,omitempty"`
	RebootRequired bool   `json:"rebootRequired,omitempty"`
}

// Clock bounds the difference machine minus client, by the times at which the
// probe's command was sent and answered: the truth lies between the two.
type Clock struct {
	OffsetMin time.Duration `json:"offsetMin"`
	OffsetMax time.Duration `json:"offsetMax"`
	// First and Last are the machine's own clock at the start and end of the probe.
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	// Synchronized is "yes", "no" or "" where timedatectl does not say.
	Synchronized string `json:"synchronized,omitempty"`
}

// Abilities are what decides whether this is a machine for Kubernetes at all.
type Abilities struct {
	// Container is the kind of container the probe runs in ("docker", "lxc"), "" in none.
	Container string `json:"container,omitempty"`
	// VM is the hypervisor ("kvm"), "" on bare metal or where it is not known.
	VM string `json:"vm,omitempty"`
	// Markers are container marker files that exist.
	Markers  []string `json:"markers,omitempty"`
	SysAdmin bool     `json:"sysAdmin"`
	Mount    bool     `json:"mount"` // a tmpfs could be mounted
	// CgroupVersion is 1 or 2, 0 where no cgroup file system is mounted.
	CgroupVersion  int  `json:"cgroupVersion"`
	CgroupWritable bool `json:"cgroupWritable"`
	MemoryCgroup   bool `json:"memoryCgroup"`
}

// Memory is in MiB.
type Memory struct {
	TotalMiB     int64 `json:"totalMiB"`
	AvailableMiB int64 `json:"availableMiB"`
	SwapMiB      int64 `json:"swapMiB"`
	CPUs         int   `json:"cpus"`
}

// Disks are file systems that matter and block devices.
type Disks struct {
	// Mounts are the file systems under "/", "/var/lib" and the data directory, by the path that was asked for.
	Mounts map[string]Mount `json:"mounts"`
	Blocks []Block          `json:"blocks,omitempty"`
}

// Mount is the file system that holds a path.
type Mount struct {
	Device  string `json:"device"`
	Type    string `json:"type"`
	On      string `json:"on"`
	SizeMiB int64  `json:"sizeMiB"`
	FreeMiB int64  `json:"freeMiB"`
}

// Block is one line of lsblk.
type Block struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	SizeMiB int64  `json:"sizeMiB"`
	FSType  string `json:"fsType,omitempty"`
	On      string `json:"on,omitempty"`
}

// Module is the state of a kernel module.
type Module string

const (
	// ModuleReady: loaded, or built into the kernel.
	ModuleReady Module = "ready"
	// ModuleAvailable: modprobe would find it.
	ModuleAvailable Module = "available"
	// ModuleMissing: neither.
	ModuleMissing Module = "missing"
)

// Network is interfaces and how names are resolved.
type Network struct {
	Interfaces []Interface `json:"interfaces"`
	// Default4 and Default6 are the interfaces of the default routes, "" where there is none.
	Default4    string   `json:"default4,omitempty"`
	Default6    string   `json:"default6,omitempty"`
	Nameservers []string `json:"nameservers,omitempty"`
	// ResolvedFile says that /run/systemd/resolve/resolv.conf exists, the file with the true name servers.
	ResolvedFile bool `json:"resolvedFile,omitempty"`
	// HasIPv6: IPv6 is not disabled.
	HasIPv6 bool `json:"hasIPv6,omitempty"`
}

// Interface is one network interface.
type Interface struct {
	Name string `json:"name"`
	MTU  int    `json:"mtu"`
	Up   bool   `json:"up"`
	// Addresses are in CIDR form, global scope only.
	Addresses []string `json:"addresses,omitempty"`
}

// Firewall is the state of the usual ones.
type Firewall struct {
	UFW       bool `json:"ufw"`       // active
	Firewalld bool `json:"firewalld"` // running
	// InputPolicy and ForwardPolicy are iptables' ("ACCEPT", "DROP"), "" where iptables is absent.
	InputPolicy   string `json:"inputPolicy,omitempty"`
	ForwardPolicy string `json:"forwardPolicy,omitempty"`
	// InputRejects: a rule of INPUT ends in REJECT or DROP without naming a port (Oracle's images do this).
	InputRejects bool `json:"inputRejects,omitempty"`
	// NFTDrop are chains of nftables whose policy drops what comes in: "inet filter input".
	NFTDrop []string `json:"nftDrop,omitempty"`
	// Rules are those of ufw that carry gpuctl's comment.
	Rules []string `json:"rules,omitempty"`
}

// Listener is a listening socket.
type Listener struct {
	Proto   string `json:"proto"` // tcp or udp
	Address string `json:"address"`
	Port    int    `json:"port"`
	// Process is the command name, "" where it is not visible.
	Process string `json:"process,omitempty"`
	PID     int    `json:"pid,omitempty"`
}

// Packages is the package manager's view.
type Packages struct {
	// Manager is "apt", "dnf", "yum", "zypper" or "".
	Manager string `json:"manager"`
	// Installed maps names to versions, for packages of interest (nvidia*, libnvidia*, containerd*, docker*, k3s*, linux-image*, ...).
	Installed map[string]string `json:"installed,omitempty"`
	// Broken are installed packages whose state is not "installed ok" (half-configured ...).
	Broken []string `json:"broken,omitempty"`
	Held   []string `json:"held,omitempty"`
	// Candidates maps a package to the versions its repositories offer, newest first.
	Candidates map[string][]string `json:"candidates,omitempty"`
	// Audit is the first line of dpkg --audit, "" when all is well.
	Audit string `json:"audit,omitempty"`
	// LockHolders are processes that hold a package lock: "unattended-upgr (4750)".
	LockHolders []string `json:"lockHolders,omitempty"`
	// NVIDIASources are apt source files that name the Container Toolkit's repository (libnvidia-container).
	NVIDIASources []string `json:"nvidiaSources,omitempty"`
	// UnattendedUpgrades: the service or its timer is active.
	UnattendedUpgrades bool `json:"unattendedUpgrades,omitempty"`
	// AptUnits are gpuctl-apt-* units that are still running.
	AptUnits []string `json:"aptUnits,omitempty"`
}

// PCIDevice is a display controller, accelerator, NVIDIA bridge or InfiniBand
// controller, read from /sys/bus/pci/devices.
type PCIDevice struct {
	Address string `json:"address"` // 0000:18:00.0
	Vendor  string `json:"vendor"`  // 10de
	Device  string `json:"device"`  // 2330
	Class   string `json:"class"`   // 0302
	Driver  string `json:"driver,omitempty"`
}

// File is a file on the machine. Its content never comes back.
type File struct {
	Mode string `json:"mode"` // octal: "600"
	UID  int    `json:"uid"`
	GID  int    `json:"gid"`
	Size int64  `json:"size"`
	// Hash is KeyedHash of the content; "" for what is not a regular file.
	Hash string `json:"hash,omitempty"`
	// Kind is "file", "dir", "link" or "other".
	Kind string `json:"kind"`
	// Target is where a link points.
	Target string `json:"target,omitempty"`
}

// Other is a Kubernetes or container engine that is not gpuctl's k3s.
type Other struct {
	// Name is "microk8s", "rke2", "k0s", "kubelet", "kubeadm", "cni-config", "docker", "containerd".
	Name string `json:"name"`
	// Detail is what was seen: a path, a unit, a process.
	Detail string `json:"detail"`
	// Running: a process of it was seen.
	Running bool `json:"running"`
}
