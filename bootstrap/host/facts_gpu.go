package host

// Driver is the kernel side of the NVIDIA driver and what is on disk for it.
type Driver struct {
	// Modules are the NVIDIA modules in /sys/module, and nouveau: name to use count.
	Modules map[string]int `json:"modules,omitempty"`
	// LoadedVersion is the version of the running module (/proc/driver/nvidia/version), "" when none is loaded.
	LoadedVersion string `json:"loadedVersion,omitempty"`
	// Flavour of the running module: "open", "proprietary" or "".
	Flavour string `json:"flavour,omitempty"`
	// FileVersion is the version of the module that modprobe would load, "" where there is none.
	FileVersion string `json:"fileVersion,omitempty"`
	// FileFlavour is that module's flavour by its license: "open", "proprietary" or "".
	FileFlavour string `json:"fileFlavour,omitempty"`
	// LibraryVersion is the version in the file name of libnvidia-ml.so.*.
	LibraryVersion string `json:"libraryVersion,omitempty"`
	// Nodes are /dev/nvidia* .
	Nodes []string `json:"nodes,omitempty"`
	// Runfile: /usr/bin/nvidia-uninstall exists (driver not from packages).
	Runfile bool `json:"runfile,omitempty"`
	// NouveauBlacklisted: a modprobe.d file blacklists nouveau.
	NouveauBlacklisted bool `json:"nouveauBlacklisted,omitempty"`
}

// SMI is what nvidia-smi answered. The fact is absent where there is no nvidia-smi.
type SMI struct {
	// ExitCode and Message are of the query; Message is its first line of error.
	ExitCode int    `json:"exitCode"`
	Message  string `json:"message,omitempty"`
	// DriverVersion is the version nvidia-smi reports.
	DriverVersion string `json:"driverVersion,omitempty"`
	GPUs          []GPU  `json:"gpus,omitempty"`
	// SlicesListed: the slices of GPUs in MIG mode were asked for and listed.
	SlicesListed bool `json:"slicesListed,omitempty"`
	// Lost are PCI addresses nvidia-smi could not open.
	Lost []string `json:"lost,omitempty"`
	// Busy are UUIDs of GPUs with running compute processes.
	Busy []string `json:"busy,omitempty"`
}

// GPU is one row of nvidia-smi's query. Empty strings and zeros are values it would not tell.
type GPU struct {
	Index      int    `json:"index"`
	UUID       string `json:"uuid"`
	Name       string `json:"name"`
	PCI        string `json:"pci"` // 0000:18:00.0, lower case
	MemoryMiB  int64  `json:"memoryMiB,omitempty"`
	Compute    string `json:"compute,omitempty"` // 9.0
	MIG        string `json:"mig,omitempty"`     // Enabled, Disabled
	MIGPending string `json:"migPending,omitempty"`
	// Slices are its MIG devices.
	Slices []Slice `json:"slices,omitempty"`
	ECC    string  `json:"ecc,omitempty"`
	// Persistence is Enabled or Disabled.
	Persistence string `json:"persistence,omitempty"`
	// Fabric is the state of the NVLink fabric: Completed, In Progress.
	Fabric string `json:"fabric,omitempty"`
	// Serial is the board's number, as a provider knows it.
	Serial string `json:"serial,omitempty"`
	// Trouble is a health phrase that stood where a value belongs: "GPU requires reset".
	Trouble string `json:"trouble,omitempty"`
}

// Slice is a MIG device of a GPU.
type Slice struct {
	UUID    string `json:"uuid"`
	Profile string `json:"profile"` // 1g.10gb
}

// Fabric is NVSwitch and its manager.
type Fabric struct {
	// Switches counts /proc/driver/nvidia-nvswitch/devices.
	Switches int `json:"switches"`
	// Manager is systemd's ActiveState of nvidia-fabricmanager, "" where the unit does not exist.
	Manager string `json:"manager,omitempty"`
	// ManagerMessage is the last line of its journal.
	ManagerMessage string `json:"managerMessage,omitempty"`
	// Persistenced is ActiveState of nvidia-persistenced, "" where it does not exist.
	Persistenced string `json:"persistenced,omitempty"`
}

// Toolkit is the NVIDIA Container Toolkit on the host.
type Toolkit struct {
	// Version is what nvidia-ctk --version prints ("1.19.1").
	Version string `json:"version,omitempty"`
	// Runtime is the nvidia-container-runtime that k3s would find first, with its
	// own search order (/usr/local/nvidia/toolkit, then systemd's PATH).
	Runtime string `json:"runtime,omitempty"`
	// Binaries are paths of the toolkit's programs by name.
	Binaries map[string]string `json:"binaries,omitempty"`
	// OperatorCopy: /usr/local/nvidia/toolkit holds a runtime (the GPU Operator's).
	OperatorCopy bool `json:"operatorCopy,omitempty"`
	// CDISpecs are files in /etc/cdi and /var/run/cdi.
	CDISpecs []string `json:"cdiSpecs,omitempty"`
}

// K3s is what is installed and running. The fact is absent on a machine without any trace of it.
type K3s struct {
	// Version is "v1.36.3+k3s1"; Banner the whole first line of k3s --version.
	Version string `json:"version,omitempty"`
	Banner  string `json:"banner,omitempty"`
	Path    string `json:"path,omitempty"`
	SHA256  string `json:"sha256,omitempty"`
	// Units maps "k3s" and "k3s-agent" to their state; units that do not exist are not in it.
	Units map[string]Unit `json:"units,omitempty"`
	// ServerURL is the server an agent joins, from config files or the unit's environment.
	ServerURL string `json:"serverURL,omitempty"`
	// ConfigKeys are the top-level keys of each configuration file, without values.
	ConfigKeys map[string][]string `json:"configKeys,omitempty"`
	// InForce are the values of gpuctl's own configuration file that say how the
	// machine is reached (node-ip, flannel-iface, ...), none of them secret; "unproven" is set where the node registers with that taint.
	InForce map[string]string `json:"inForce,omitempty"`
	// Containerd is what the rendered containerd configuration says.
	Containerd ContainerdConfig `json:"containerd"`
}

// Unit is the state of a systemd unit, from systemctl show.
type Unit struct {
	Active   string `json:"active"`            // ActiveState
	Sub      string `json:"sub,omitempty"`     // SubState
	Enabled  string `json:"enabled,omitempty"` // UnitFileState
	Restarts int    `json:"restarts"`
	// StartedMonotonic is ExecMainStartTimestampMonotonic in microseconds: it changes with every start.
	StartedMonotonic int64 `json:"startedMonotonic"`
	PID              int   `json:"pid,omitempty"`
}

// ContainerdConfig is the part of k3s's rendered config.toml that matters for GPUs.
type ContainerdConfig struct {
	// Schema is the "version" of the file; 0 where there is no file.
	Schema int `json:"schema"`
	// Imports is the imports line's content.
	Imports string `json:"imports,omitempty"`
	// Runtimes maps handler names to BinaryName.
	Runtimes map[string]string `json:"runtimes,omitempty"`
	// Default is default_runtime_name.
	Default string `json:"default,omitempty"`
	// Templates are config*.tmpl files that exist.
	Templates []string `json:"templates,omitempty"`
}

// KernelMsg is a line of the kernel log that speaks of NVIDIA hardware.
type KernelMsg struct {
	// Xid is the code of an Xid line, 0 for other lines.
	Xid int    `json:"xid,omitempty"`
	PCI string `json:"pci,omitempty"`
	// Uptime is when it was written, in seconds since boot; 0 where the log did
	// not say so.
	Uptime float64 `json:"uptime,omitempty"`
	Text   string  `json:"text"`
}
