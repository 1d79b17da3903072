package host

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/inventory"
)

// Free space under the data directory, in MiB: images of CUDA programs have
// several GB; with less than diskStop not even k3s and its operator fit.
const (
	diskWarn = 30 * 1024
	diskStop = 5 * 1024
)

func (c *check) resources() {
	if d := c.seen.Disks; d.Has() {
		m, ok := d.Value.Mounts[c.want.dataDir()]
		if !ok {
			m = d.Value.Mounts["/var/lib"]
		}
		// What k3s already took is not missing.
		installed := c.seen.K3s.Has() && c.seen.K3s.Value.Version != ""
		switch {
		case m.SizeMiB == 0:
		case c.want.Disk != nil && c.seen.DataDisk.Has() && !c.seen.DataDisk.Value.mounted(*c.want.Disk):
			// What counts is the disk that is about to be mounted.
		case m.FreeMiB < diskStop && !installed:
			c.as(diag.Blocks, CodeDisk, "%s free of %s on %s, where %s is%s", gib(m.FreeMiB), gib(m.SizeMiB), m.On, c.want.dataDir(), spare(d.Value))
		case m.FreeMiB < diskWarn && !installed:
			c.raise(CodeDisk, "%s free of %s on %s, where %s is%s", gib(m.FreeMiB), gib(m.SizeMiB), m.On, c.want.dataDir(), spare(d.Value))
		}
	}
	if m := c.seen.Memory; m.Has() {
		least := int64(450)
		if c.want.Role == inventory.Server {
			least = 1900
		}
		if m.Value.TotalMiB < least {
			c.raise(CodeMemory, "%d MiB", m.Value.TotalMiB)
		}
		if m.Value.SwapMiB > 0 {
			c.raise(CodeSwap, "%d MiB of swap", m.Value.SwapMiB)
		}
	}
}

func gib(mib int64) string { return fmt.Sprintf("%.1f GiB", float64(mib)/1024) }

// spare names large disks without a file system, the ones to mount.
func spare(d Disks) string {
	var names []string
	for _, b := range d.Blocks {
		if b.Type == "disk" && b.FSType == "" && b.On == "" && b.SizeMiB >= 50*1024 && !hasParts(d, b.Name) {
			names = append(names, fmt.Sprintf("%s (%s)", b.Name, gib(b.SizeMiB)))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; unused disks: " + strings.Join(names, ", ")
}

func hasParts(d Disks, disk string) bool {
	for _, b := range d.Blocks {
		if b.Type == "part" && strings.HasPrefix(b.Name, disk) {
			return true
		}
	}
	return false
}

func (c *check) modules() {
	if !c.seen.Modules.Has() {
		return
	}
	var missing []string
	for _, m := range c.want.modules() {
		if c.seen.Modules.Value[m] == ModuleMissing {
			missing = append(missing, m)
		}
	}
	if len(missing) > 0 {
		c.raise(CodeKernelModule, "%s, kernel %s", strings.Join(missing, ", "), c.seen.System.Value.Kernel)
	}
}

// ownContainerd says which of two the cluster uses (NVIDIA/nvidia-container-toolkit#982).
const ownContainerd = "the cluster uses k3s's own, at /run/k3s/containerd/containerd.sock"

func (c *check) others() {
	for _, o := range c.seen.Others.Value {
		switch o.Name {
		case "cni-config":
			if !c.seen.K3s.Has() {
				c.raise(CodeForeignCNI, "%s", o.Detail)
			}
		case "docker", "cri-o":
			if o.Running {
				c.raise(CodeSecondEngine, "%s; %s", o.Detail, ownContainerd)
			}
		case "containerd":
			if o.Running && !c.running("docker") {
				c.raise(CodeSecondEngine, "%s; %s", o.Detail, ownContainerd)
			}
		default:
			state := "not running"
			if o.Running {
				state = "running"
			}
			c.raise(CodeForeign, "%s: %s, %s", o.Name, o.Detail, state)
		}
	}
	c.ports()
}

func (c *check) running(name string) bool {
	for _, o := range c.seen.Others.Value {
		if o.Name == name && o.Running {
			return true
		}
	}
	return false
}

// ports names who listens where k3s wants to. On a machine where k3s runs they
// are its own; where nobody could see whether it runs, they may be.
func (c *check) ports() {
	if c.seen.K3s.Unsure() {
		return
	}
	for _, u := range c.seen.K3s.Value.Units {
		if u.Active == "active" || u.Active == "activating" {
			return
		}
	}
	taken, theirs := map[string]bool{}, map[string]bool{}
	for _, l := range c.seen.Ports.Value {
		for _, p := range c.want.ports() {
			if l.Proto == "tcp" && l.Port == p && !strings.HasPrefix(l.Process, "k3s") {
				who := l.Process
				if who == "" {
					who = "an unknown process"
				}
				taken[fmt.Sprintf("%d by %s", p, who)] = true
				if slices.Contains([]string{"kubelite", "kube-apiserver", "kubelet", "k0s", "rke2", "etcd"}, l.Process) {
					theirs[l.Process] = true
				}
			}
		}
	}
	if list := slices.Sorted(maps.Keys(taken)); len(list) > 0 {
		c.raise(CodePort, "%s", strings.Join(list, ", "))
	}
	if list := slices.Sorted(maps.Keys(theirs)); len(list) > 0 {
		c.raise(CodePortsOfOthers, "%s", strings.Join(list, ", "))
	}
}

func (c *check) firewall() {
	f := c.seen.Firewall.Value
	if f.UFW && c.want.Open == nil {
		c.raise(CodeUFW, "ufw is enabled")
	}
	if f.Firewalld && c.want.Open == nil {
		c.raise(CodeFirewalld, "firewalld is active")
	}
	switch {
	case f.UFW || f.Firewalld:
	case f.InputRejects:
		c.raise(CodeIptables, "the INPUT chain ends with a rule that refuses everything")
	case f.InputPolicy == "DROP":
		c.raise(CodeInputDrop, "the policy of the INPUT chain of iptables is DROP")
	case len(f.NFTDrop) > 0:
		c.raise(CodeInputDrop, "the policy of nftables' %s is drop", strings.Join(f.NFTDrop, " and "))
	}
}
