// Package nvidia knows what NVIDIA GPUs need of a machine: the kernel driver
// (which one fits which card, and whether the one that is there is good), the
// fabric manager, and the Container Toolkit, which it installs.
//
// Everything but an action's Apply is pure.
package nvidia

import (
	"fmt"
	"strings"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/source"
)

// Driver modes of gpuctl.yaml.
const (
	ModeAuto     = "auto"
	ModeKeep     = "keep"
	ModePackage  = "package"
	ModeOperator = "operator"
	ModeNone     = "none"
)

// Want is what the GPUs of a machine shall be.
type Want struct {
	Machine string
	// GPUs is how many were promised; nil means not said.
	GPUs *int
	// GPUModel is a part of the model's name that was promised; empty means not said.
	GPUModel string
	// Mode says who provides the driver; empty means ModeAuto.
	Mode    string
	Driver  Driver
	Toolkit Toolkit
	// Images are those from which the GPU Operator brings a driver, for ModeOperator.
	Images Images
	// Packages is the mirror of package repositories, and how to be let in.
	Packages source.Source
	// Key is the key of the probe, by which drift of files shows.
	Key string
	// DataDir is where k3s keeps its data; empty means host.DefaultDataDir.
	DataDir string
}

// Toolkit is the Container Toolkit's version and where it comes from.
type Toolkit struct {
	// Version is the version of the packages: "1.20.0-1".
	Version string
	// Repository is the apt repository without the architecture: "https://nvidia.github.io/libnvidia-container/stable/deb".
	Repository string
	// KeyURL is where its key is; KeyFingerprint (40 hex digits) what it must be.
	KeyURL, KeyFingerprint string
}

// Codes this package raises.
const (
	CodeDriverMissing     diag.Code = "driver-missing"
	CodeDriverNotLoaded   diag.Code = "driver-not-loaded"
	CodeDriverLibrary     diag.Code = "driver-library-missing"
	CodeDriverMode        diag.Code = "driver-mode-unsupported"
	CodeDriverMismatch    diag.Code = "driver-version-mismatch"
	CodeNeedsOpen         diag.Code = "driver-needs-open"
	CodeNeedsProprietary  diag.Code = "driver-needs-proprietary"
	CodeDriverTooNew      diag.Code = "driver-too-new"
	CodeDriverTooOld      diag.Code = "driver-too-old"
	CodeDriverInit        diag.Code = "driver-init-failed"
	CodeDriverRunfile     diag.Code = "driver-runfile"
	CodeNouveau           diag.Code = "nouveau-loaded"
	CodeSecureBoot        diag.Code = "secure-boot-unsigned"
	CodeSMIHangs          diag.Code = "nvidia-smi-hangs"
	CodeUVM               diag.Code = "uvm-missing"
	CodeNoGPU             diag.Code = "gpu-none"
	CodeFewer             diag.Code = "gpu-fewer"
	CodeMore              diag.Code = "gpu-more"
	CodeModel             diag.Code = "gpu-model-differs"
	CodeOtherVendor       diag.Code = "gpu-other-vendor"
	CodePassedThrough     diag.Code = "gpu-passed-through"
	CodeTooOld            diag.Code = "gpu-too-old"
	CodeUnknownCard       diag.Code = "gpu-unknown-card"
	CodeLost              diag.Code = "gpu-lost"
	CodeCountDiffers      diag.Code = "gpu-count-differs"
	CodeNeedsReset        diag.Code = "gpu-needs-reset"
	CodeXid               diag.Code = "gpu-xid"
	CodeBusy              diag.Code = "gpu-busy"
	CodeFabricManager     diag.Code = "fabric-manager-down"
	CodeFabricVersion     diag.Code = "fabric-manager-version"
	CodeFabricNotReady    diag.Code = "fabric-not-ready"
	CodeMIGPending        diag.Code = "mig-pending"
	CodeOperatorCopy      diag.Code = "toolkit-operator-copy"
	CodeToolkitNewer      diag.Code = "toolkit-newer"
	CodePackageKey        diag.Code = "package-key-mismatch"
	CodeAptSourceConflict diag.Code = "apt-sources-conflict"
	CodeMixedCards        diag.Code = "driver-cards-mixed"
	CodeNoPackage         diag.Code = "driver-no-package"
	CodeRebootNeeded      diag.Code = "driver-reboot-needed"
	CodeDriverImage       diag.Code = "driver-image-missing"
	CodeToolkitPackage    diag.Code = "toolkit-no-package"
)

// Codes returns every code this package raises.
func Codes() []diag.Code {
	return append(conditionCodes(), []diag.Code{
		CodeDriverMissing, CodeDriverNotLoaded, CodeDriverLibrary, CodeDriverMode, CodeDriverMismatch, CodeNeedsOpen,
		CodeNeedsProprietary, CodeDriverTooNew, CodeDriverTooOld, CodeDriverInit, CodeDriverRunfile, CodeNouveau,
		CodeSecureBoot, CodeSMIHangs, CodeUVM, CodeNoGPU, CodeFewer, CodeMore, CodeModel, CodeOtherVendor,
		CodePassedThrough, CodeTooOld, CodeUnknownCard, CodeLost, CodeCountDiffers, CodeNeedsReset, CodeXid, CodeBusy,
		CodeFabricManager, CodeFabricVersion, CodeFabricNotReady, CodeMIGPending, CodeOperatorCopy, CodeToolkitNewer,
		CodePackageKey, CodeAptSourceConflict, CodeMixedCards, CodeNoPackage, CodeRebootNeeded,
		CodeDriverImage, CodeToolkitPackage,
	}...)
}

// Findings says what is wrong with the GPUs of a machine and their driver. It
// is pure; without the PCI bus seen it says nothing.
func Findings(want Want, seen host.Facts) []diag.Finding {
	if !seen.PCI.Has() {
		return nil
	}
	c := check{want: want, seen: seen, gpus: GPUs(seen)}
	c.count()
	if len(c.gpus) == 0 {
		return c.found
	}
	c.cards()
	if want.Mode != ModeNone {
		c.driver()
		c.health()
		if want.Mode != ModeOperator { // its driver image brings the fabric manager too
			c.fabric()
		}
	}
	c.toolkit()
	c.heal()
	return c.found
}

// heal lets findings that the plan ends only inform, and adds why it cannot.
func (c *check) heal() {
	way := courseOf(c.want, c.seen)
	if way.obstacle != nil {
		if !c.raised(way.obstacle.Code) {
			c.found = append(c.found, *way.obstacle)
		}
		return
	}
	_, manager := fabricAction(c.want, c.seen, way, nil)
	for i, f := range c.found {
		fabric := f.Code == CodeFabricManager || f.Code == CodeFabricVersion || f.Code == CodeFabricNotReady
		if way.heals[f.Code] || (fabric && manager) {
			c.found[i].Severity = diag.Informs
		}
	}
}

type check struct {
	want  Want
	seen  host.Facts
	gpus  []host.PCIDevice
	found []diag.Finding
}

func (c *check) raise(code diag.Code, format string, args ...any) {
	c.found = append(c.found, diag.Found(code, c.want.Machine, fmt.Sprintf(format, args...)))
}

func (c *check) raised(codes ...diag.Code) bool {
	for _, f := range c.found {
		for _, code := range codes {
			if f.Code == code {
				return true
			}
		}
	}
	return false
}

// count compares what was promised with what is on the bus.
func (c *check) count() {
	promised, have := c.want.GPUs, len(c.gpus)
	others := Others(c.seen)
	switch {
	case have == 0 && len(others) > 0 && (promised == nil || *promised > 0):
		c.raise(CodeOtherVendor, "%s", strings.Join(others, ", "))
		if promised == nil && !accelerated(c.seen) {
			// Nobody said there would be GPUs: graphics in the processor are no reason to stop.
			c.found[len(c.found)-1].Severity = diag.Informs
		}
	case promised == nil:
	case have == 0 && *promised > 0:
		c.raise(CodeNoGPU, "%d promised, none on the PCI bus", *promised)
	case have < *promised:
		c.raise(CodeFewer, "%d promised, %d on the PCI bus", *promised, have)
	case have > *promised:
		c.raise(CodeMore, "%d promised, %d on the PCI bus", *promised, have)
	}
}

// cards looks at each card's generation, owner and name.
func (c *check) cards() {
	var old, unknown, passed []string
	for _, d := range c.gpus {
		if d.Driver == "vfio-pci" {
			passed = append(passed, d.Address)
		}
		g, ok := generationOf(d.Device)
		if !ok {
			unknown = append(unknown, d.Address+" "+d.Vendor+":"+d.Device)
		} else if g.LastBranch > 0 && g.LastBranch < 580 {
			old = append(old, d.Address+" "+g.Name)
		}
	}
	for _, l := range []struct {
		code diag.Code
		list []string
	}{{CodePassedThrough, passed}, {CodeTooOld, old}, {CodeUnknownCard, unknown}} {
		if len(l.list) > 0 {
			c.raise(l.code, "%s", strings.Join(l.list, ", "))
		}
	}
	if w := c.want.GPUModel; w != "" {
		for _, name := range c.models() {
			if !strings.Contains(plain(name), plain(w)) {
				c.raise(CodeModel, "%q promised, %q found", w, name)
				return
			}
		}
	}
}

// models are the GPUs' names: the driver's where it answers, else pci.ids's.
func (c *check) models() []string {
	var names []string
	for _, g := range c.seen.SMI.Value.GPUs {
		names = append(names, g.Name)
	}
	if len(names) > 0 {
		return names
	}
	for _, d := range c.gpus {
		if card, ok := cards()[d.Device]; ok {
			names = append(names, card.Model)
		}
	}
	return names
}

// plain keeps letters and digits only: "H100-SXM" and "H100 SXM5" then compare.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return -1
	}, s)
}
