package host

import (
	"strconv"
	"strings"

	"github.com/gpuctl/gpuctl/internal/inventory"
)

// Want is what a machine's operating system shall be ready for.
type Want struct {
	// Machine is the machine's name.
	Machine string
	Role    inventory.Role
	// Kubernetes is the k3s release ("v1.36.3+k3s1"); it decides whether cgroup v1 will do.
	Kubernetes string
	// DataDir is where k3s keeps its data; empty means DefaultDataDir.
	DataDir string
	// Disk is a disk for the data; nil means none.
	Disk *Disk
	// Open is what the machine's own firewall shall let in; nil leaves it alone.
	Open *Open
	// Spot says how a machine learns that it is taken away; nil means that nobody watches.
	Spot *Spot
	// Modules are the kernel modules that the pod network needs beside
	// overlay and br_netfilter: "vxlan" or "wireguard".
	Modules []string
	// GPU: the machine has NVIDIA GPUs, whose driver must not part from its kernel.
	GPU bool
	// Key is the Key of the probe's Request; without it every file of gpuctl looks changed.
	Key string
}

// dataDir is DataDir with its default.
func (w Want) dataDir() string {
	if w.DataDir == "" {
		return DefaultDataDir
	}
	return w.DataDir
}

// modules are all the kernel modules, each once, in a fixed order.
func (w Want) modules() []string {
	return unique([]string{"overlay", "br_netfilter"}, w.Modules)
}

// ports are what k3s listens on, see https://docs.k3s.io/installation/requirements.
func (w Want) ports() []int {
	if w.Role == inventory.Server {
		return []int{6443, 10250, 2379, 2380}
	}
	return []int{10250}
}

// minor reads the minor version of "v1.36.3+k3s1", 0 where it is none.
func minor(version string) int {
	f := strings.Split(strings.TrimPrefix(version, "v"), ".")
	if len(f) < 2 {
		return 0
	}
	n, err := strconv.Atoi(f[1])
	if err != nil {
		return 0
	}
	return n
}
