package host

import (
	"fmt"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/internal/diag"
)

// Findings says what is wrong with a machine as a place for Kubernetes. It is
// pure. What GPUs need is checked by package nvidia, what k3s needs of its own
// files by package k3s.
func Findings(want Want, seen Facts) []diag.Finding {
	c := check{want: want, seen: seen}
	c.whole()
	c.abilities()
	c.system()
	c.clock()
	c.packages()
	c.resources()
	c.disk()
	c.modules()
	c.others()
	c.firewall()
	c.surroundings()
	return c.found
}

type check struct {
	want  Want
	seen  Facts
	found []diag.Finding
}

func (c *check) raise(code diag.Code, format string, args ...any) {
	c.found = append(c.found, diag.Found(code, c.want.Machine, fmt.Sprintf(format, args...)))
}

// as raises with a severity that this finder knows better.
func (c *check) as(severity diag.Severity, code diag.Code, format string, args ...any) {
	c.raise(code, format, args...)
	c.found[len(c.found)-1].Severity = severity
}

// whole names the facts that could not be seen, those that plans rest on.
func (c *check) whole() {
	s := c.seen
	for _, f := range []struct {
		name, why string
		unsure    bool
	}{
		{"operating system", s.OS.Reason(), s.OS.Unsure()},
		{"system", s.System.Reason(), s.System.Unsure()},
		{"abilities", s.Abilities.Reason(), s.Abilities.Unsure()},
		{"disks", s.Disks.Reason(), s.Disks.Unsure()},
		{"network", s.Network.Reason(), s.Network.Unsure()},
		{"packages", s.Packages.Reason(), s.Packages.Unsure()},
		{"PCI devices", s.PCI.Reason(), s.PCI.Unsure()},
		{"k3s", s.K3s.Reason(), s.K3s.Unsure()},
		{"files", s.Files.Reason(), s.Files.Unsure()},
	} {
		if f.unsure {
			c.raise(CodeProbeIncomplete, "%s: %s", f.name, f.why)
		}
	}
}

func (c *check) abilities() {
	if !c.seen.Abilities.Has() {
		return
	}
	a := c.seen.Abilities.Value
	var lacks []string
	if !a.SysAdmin {
		lacks = append(lacks, "CAP_SYS_ADMIN")
	}
	if !a.Mount {
		lacks = append(lacks, "mount")
	}
	if a.CgroupVersion == 0 || !a.CgroupWritable {
		lacks = append(lacks, "writable cgroups")
	}
	if len(lacks) > 0 {
		kind := a.Container
		if kind == "" {
			kind = "no container detected"
		}
		c.raise(CodeContainer, "lacks %s (%s)", strings.Join(lacks, ", "), kind)
		return
	}
	if !a.MemoryCgroup {
		c.raise(CodeCgroup, "the memory controller is off")
	}
	if a.CgroupVersion == 1 && minor(c.want.Kubernetes) >= 35 {
		c.raise(CodeCgroupV1, "cgroup v1, and %s is wanted", c.want.Kubernetes)
	}
}

func (c *check) system() {
	if s := c.seen.System; s.Has() {
		if s.Value.Init != "systemd" {
			c.raise(CodeNoSystemd, "process 1 is %s", s.Value.Init)
		}
		if s.Value.Arch != "x86_64" && s.Value.Arch != "aarch64" {
			c.raise(CodeArchitecture, "%s", s.Value.Arch)
		}
		if s.Value.RebootRequired {
			c.raise(CodeReboot, "/var/run/reboot-required exists; kernel %s runs", s.Value.Kernel)
		}
	}
	if o := c.seen.OS; o.Has() && o.Value.Family != "debian" {
		evidence := o.Value.PrettyName
		if o.Value.BaseID != o.Value.ID {
			evidence += ", built on " + o.Value.BaseID + " " + o.Value.BaseVersion
		}
		c.raise(CodeOS, "%s (ID=%s)", evidence, o.Value.ID)
	}
}

// Offsets above these are a warning and a stop: certificates are made on one
// machine and checked on others, k3s-io/k3s#2112.
const (
	clockWarn = 2 * time.Second
	clockStop = 60 * time.Second
)

func (c *check) clock() {
	if !c.seen.Clock.Has() {
		return
	}
	k := c.seen.Clock.Value
	off := k.Offset()
	severity := diag.Warns
	switch {
	case off.Abs() > clockStop:
		severity = diag.Blocks
	case off.Abs() <= clockWarn:
		return
	}
	word := "ahead of"
	if off < 0 {
		word = "behind"
	}
	sync := ""
	if k.Synchronized == "no" {
		sync = ", not synchronized"
	}
	c.as(severity, CodeClock, "%.0f s %s this computer's clock%s", off.Abs().Seconds(), word, sync)
}

// Offset is the least difference to the client's clock that the two stamps
// prove; 0 where they allow for none.
func (k Clock) Offset() time.Duration {
	lo, hi := k.OffsetMin, k.OffsetMax
	if lo > hi {
		lo, hi = hi, lo
	}
	switch {
	case lo > 0:
		return lo
	case hi < 0:
		return hi
	}
	return 0
}

func (c *check) packages() {
	if s := c.seen.CloudInit; s.Has() && s.Value == "running" {
		c.raise(CodeCloudInit, "cloud-init has not finished")
	}
	if !c.seen.Packages.Has() {
		return
	}
	p := c.seen.Packages.Value
	if len(p.LockHolders) > 0 {
		c.raise(CodePackageLock, "held by %s", strings.Join(p.LockHolders, ", "))
	}
	// While another installation runs, half-configured packages are its business.
	if len(p.LockHolders) == 0 && (p.Audit != "" || len(p.Broken) > 0) {
		evidence := p.Audit
		if len(p.Broken) > 0 {
			evidence = strings.TrimSpace(evidence + " " + strings.Join(p.Broken, " "))
		}
		c.raise(CodeDpkg, "%s", evidence)
	}
}
