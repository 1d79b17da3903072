package nvidia

import (
	"fmt"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/internal/cuda"
	"github.com/gpuctl/gpuctl/internal/diag"
)

// Codes of a driver and its GPUs that work, but not in every way, and of how
// containerd is wired to them.
const (
	CodeDeviceMajor    diag.Code = "driver-device-major"
	CodeCUDAMajor      diag.Code = "driver-cuda-major"
	CodePackagesMixed  diag.Code = "driver-packages-mixed"
	CodeHeadersMissing diag.Code = "driver-headers-missing"
	CodeNotHeld        diag.Code = "driver-not-held"
	CodePersistence    diag.Code = "persistence-off"
	CodeModelsMixed    diag.Code = "gpu-models-mixed"
	CodeUnifiedMemory  diag.Code = "gpu-unified-memory"
	CodeVGPU           diag.Code = "vgpu-unlicensed"
	CodeInfoROM        diag.Code = "inforom-corrupt"
	CodeHMM            diag.Code = "cuda-hmm-kaslr"
	CodeMIGMixedDriver diag.Code = "mig-mixed-driver"
	CodeMIGEmpty       diag.Code = "mig-empty"
	CodeToolkitPart    diag.Code = "toolkit-incomplete"
	CodeRuntimeUnknown diag.Code = "runtime-not-configured"
	CodeRuntimeGone    diag.Code = "runtime-binary-missing"
	CodeDefaultRuntime diag.Code = "default-runtime-missing"
)

func conditionCodes() []diag.Code {
	return append([]diag.Code{
		CodeDeviceMajor, CodeCUDAMajor, CodePackagesMixed, CodeHeadersMissing, CodeNotHeld, CodePersistence, CodeModelsMixed,
		CodeUnifiedMemory, CodeVGPU, CodeInfoROM, CodeHMM, CodeMIGMixedDriver, CodeMIGEmpty, CodeToolkitPart, CodeRuntimeUnknown,
		CodeRuntimeGone, CodeDefaultRuntime,
	}, xidCodes()...)
}

// inform raises what the plan mends or what needs no deed.
func (c *check) inform(code diag.Code, format string, args ...any) {
	c.raise(code, format, args...)
	c.found[len(c.found)-1].Severity = diag.Informs
}

// condition looks at what the driver and its GPUs are like, where it serves them.
func (c *check) condition() {
	c.packageState()
	if c.logged("request_free_mem_region") {
		c.raise(CodeHMM, "%s", c.line("request_free_mem_region"))
	}
	loaded := c.seen.Driver.Value.LoadedVersion
	if loaded == "" || !c.seen.SMI.Has() {
		return
	}
	s := c.seen.SMI.Value
	if s.ExitCode == 14 || strings.Contains(strings.ToLower(s.Message), "inforom is corrupted") {
		c.raise(CodeInfoROM, "nvidia-smi: exit %d%s", s.ExitCode, quoted(s.Message))
	}
	c.deviceNodes(len(s.GPUs))
	c.kinds(s.GPUs)
	c.partitions(s.GPUs, loaded)
	c.persistence(s.GPUs)
}

// packageState compares the driver's files with each other.
func (c *check) packageState() {
	d, p := c.seen.Driver.Value, c.seen.Packages.Value
	if d.FileVersion != "" && d.LibraryVersion != "" && d.FileVersion != d.LibraryVersion {
		c.raise(CodePackagesMixed, "the module on disk is %s, the library %s", d.FileVersion, d.LibraryVersion)
	}
	kernel := c.seen.System.Value.Kernel
	var dkms, loose []string
	for name := range p.Installed {
		if strings.HasPrefix(name, "nvidia-dkms") || strings.HasPrefix(name, "nvidia-kernel-dkms") {
			dkms = append(dkms, name)
		}
		if (strings.HasPrefix(name, "nvidia-driver") || strings.HasPrefix(name, "nvidia-utils")) && !has(p.Held, name) {
			loose = append(loose, name)
		}
	}
	if _, headers := p.Installed["linux-headers-"+kernel]; len(dkms) > 0 && !headers && d.LoadedVersion == "" && d.FileVersion == "" {
		c.raise(CodeHeadersMissing, "%s cannot build a module for kernel %s", dkms[0], kernel)
		c.found[len(c.found)-1].Severity = diag.Warns // driver-not-loaded blocks
	}
	if _, ours := c.seen.Files.Value[host.PathUnattended]; len(loose) > 0 && p.UnattendedUpgrades && !ours {
		sort.Strings(loose)
		c.raise(CodeNotHeld, "unattended-upgrades may change %s", strings.Join(loose, ", "))
	}
}

// deviceNodes: the driver makes /dev/nvidia0 and so on, one for each GPU.
func (c *check) deviceNodes(gpus int) {
	n := 0
	for _, node := range c.seen.Driver.Value.Nodes {
		if regexp.MustCompile(`^/dev/nvidia[0-9]+$`).MatchString(node) {
			n++
		}
	}
	if n > 0 && n < gpus {
		c.raise(CodeDeviceMajor, "%d of %d device files /dev/nvidiaN exist", n, gpus)
	}
}

// cudaLacks names the CUDA majors whose least driver is newer.
func cudaLacks(version string) string {
	var lacks []string
	for _, major := range []int{11, 12, 13} {
		if least, known := cuda.Floor(major); known && compare(version, least) < 0 {
			lacks = append(lacks, strconv.Itoa(major))
		}
	}
	return strings.Join(lacks, ", ")
}

// kinds looks at names: several models, shared memory, parts of a GPU.
func (c *check) kinds(gpus []host.GPU) {
	names := map[string]int{}
	var unified, parts []string
	for _, g := range gpus {
		names[g.Name]++
		if g.MemoryMiB == 0 && g.Trouble == "" && regexp.MustCompile(`\bG[BH][0-9]{2,3}\b`).MatchString(g.Name) {
			unified = append(unified, g.Name)
		}
		// Profiles of vGPU: "NVIDIA A40-24C", "GRID T4-8Q".
		if regexp.MustCompile(`-[0-9]+(-[0-9]+)?[ABCQ]$`).MatchString(g.Name) {
			parts = append(parts, fmt.Sprintf("GPU %d is %s", g.Index, g.Name))
		}
	}
	if len(names) > 1 {
		var list []string
		for name, n := range names {
			list = append(list, fmt.Sprintf("%d x %s", n, name))
		}
		sort.Strings(list)
		c.raise(CodeModelsMixed, "%s", strings.Join(list, ", "))
	}
	if len(unified) > 0 {
		c.raise(CodeUnifiedMemory, "%s tells no memory of its own", unified[0])
	}
	if len(parts) > 0 {
		c.raise(CodeVGPU, "%s", strings.Join(parts, "; "))
	}
}

// partitions: releases of branch 570 before 570.172.08 lose GPUs where only some are in MIG mode.
func (c *check) partitions(gpus []host.GPU, loaded string) {
	on, off, empty := 0, 0, []string{}
	for _, g := range gpus {
		switch g.MIG {
		case "Enabled":
			on++
			if g.MIGPending != "Disabled" && len(g.Slices) == 0 && c.seen.SMI.Value.SlicesListed {
				empty = append(empty, fmt.Sprintf("GPU %d", g.Index))
			}
		case "Disabled":
			off++
		}
	}
	if len(empty) > 0 {
		c.raise(CodeMIGEmpty, "MIG is on and nothing was cut: %s", strings.Join(empty, ", "))
	}
	if on > 0 && off > 0 && branch(loaded) == 570 && compare(loaded, "570.172.08") < 0 {
		c.raise(CodeMIGMixedDriver, "%d GPUs with MIG, %d without, driver %s", on, off, loaded)
	}
}

// persistence matters where waking many GPUs takes longer than a container's start
// may. A daemon that was to run and ended is told whatever the number of GPUs is: the
// driver's package enables it, and the look after a reboot sees whether it stayed.
func (c *check) persistence(gpus []host.GPU) {
	off := 0
	for _, g := range gpus {
		if g.Persistence == "Disabled" {
			off++
		}
	}
	switch daemon := c.seen.Fabric.Value.Persistenced; {
	case off > 0 && daemon == "failed":
		c.raise(CodePersistence, "persistence mode is off on %d GPUs and nvidia-persistenced has failed", off)
	case off >= 4 && daemon != "active":
		c.raise(CodePersistence, "persistence mode is off on %d GPUs and nvidia-persistenced does not run", off)
	}
}

// wiring compares what containerd was told at k3s's last start with what is
// there. The plan mends it: see runtimeAction.
func (c *check) wiring() {
	t, containerd := c.seen.Toolkit.Value, c.seen.K3s.Value.Containerd
	// A driver that does not serve has other troubles than its age.
	if loaded := c.seen.Driver.Value.LoadedVersion; loaded != "" && cudaLacks(loaded) != "" && !diag.AnyBlocks(c.found) {
		c.raise(CodeCUDAMajor, "driver %s is too old for images of CUDA %s", loaded, cudaLacks(loaded))
	}
	if t.Version != "" && len(t.Binaries) > 0 {
		for _, b := range []string{"nvidia-container-runtime", "nvidia-cdi-hook"} {
			if t.Binaries[b] == "" {
				c.inform(CodeToolkitPart, "toolkit %s is installed without %s", t.Version, b)
				break
			}
		}
	}
	if containerd.Schema == 0 || !k3sRuns(c.seen) || !c.seen.Toolkit.Has() && !c.seen.Toolkit.Missing() {
		return
	}
	named := containerd.Runtimes["nvidia"]
	switch {
	case t.Runtime == "" && containerd.Default == "nvidia":
		c.raise(CodeDefaultRuntime, "containerd's default runtime is nvidia (%s), and there is no nvidia-container-runtime: k3s will not start again", named)
		c.found[len(c.found)-1].Severity = diag.Warns
	case t.Runtime == "" && named != "":
		c.raise(CodeRuntimeGone, "containerd runs %s, which does not exist", named)
	case t.Runtime != "" && named == "":
		c.inform(CodeRuntimeUnknown, "%s is there, k3s started without it", t.Runtime)
	}
}
