package nvidia

import (
	"strings"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/internal/diag"
)

// Good says whether the machine's driver serves every GPU on the bus, so that
// it is kept. It is what Findings has nothing blocking against.
func Good(seen host.Facts) bool {
	if len(GPUs(seen)) == 0 || seen.Driver.Value.LoadedVersion == "" {
		return false
	}
	return !diag.AnyBlocks(Findings(Want{Mode: ModeKeep}, seen))
}

// driver names the first thing that keeps the driver from serving the GPUs, and
// what else contradicts the cards.
func (c *check) driver() {
	d := c.seen.Driver.Value
	if !c.seen.Driver.Has() {
		return
	}
	if c.want.Mode == ModeOperator {
		c.nouveau()
		c.operatorDriver(d)
		return
	}
	if d.Runfile {
		c.raise(CodeDriverRunfile, "/usr/bin/nvidia-uninstall exists")
	}
	c.nouveau()
	if d.LoadedVersion == "" {
		c.notLoaded(d)
		return
	}
	c.flavour(d)
	c.smi(d)
	if _, ok := d.Modules["nvidia_uvm"]; !ok && !c.raised(CodeDriverMismatch) && !has(d.Nodes, "/dev/nvidia-uvm") {
		c.raise(CodeUVM, "/dev/nvidia-uvm does not exist")
	}
}

func (c *check) nouveau() {
	n := 0
	for _, g := range c.gpus {
		if g.Driver == "nouveau" {
			n++
		}
	}
	if n == 0 {
		return // loaded and unused is no trouble
	}
	note := ""
	if c.seen.Driver.Value.NouveauBlacklisted {
		note = "; it is blacklisted, so a reboot is pending (and the initramfs must be rebuilt)"
	}
	c.raise(CodeNouveau, "nouveau drives %d GPUs%s", n, note)
}

func (c *check) notLoaded(d host.Driver) {
	if c.seen.SMI.Missing() && d.FileVersion == "" && d.LibraryVersion == "" {
		c.raise(CodeDriverMissing, "%d GPUs, no kernel module, no nvidia-smi", len(c.gpus))
		return
	}
	unsigned := c.logged("key was rejected") || c.logged("unsigned module is rejected") || c.logged("required key not available")
	if c.seen.SecureBoot.Has() && c.seen.SecureBoot.Value && unsigned {
		c.raise(CodeSecureBoot, "Secure Boot is on and the kernel refused the module")
		return
	}
	where := "the module " + d.FileVersion + " is on disk"
	if d.FileVersion == "" {
		where = "there is no module for kernel " + c.seen.System.Value.Kernel
	}
	if c.seen.SecureBoot.Value {
		where += "; Secure Boot is on"
	}
	c.raise(CodeDriverNotLoaded, "%s", where)
}

// flavour holds the loaded driver against each card.
func (c *check) flavour(d host.Driver) {
	for _, g := range c.gpus {
		if g.Driver == "vfio-pci" {
			continue
		}
		card := cards()[g.Device]
		gen, ok := generationOf(g.Device)
		if !ok {
			continue
		}
		name := Model(g)
		needsOpen := gen.Modules == "open" || card.OpenOnly
		switch {
		case needsOpen && d.Flavour == "proprietary" && !c.raised(CodeNeedsOpen):
			c.raise(CodeNeedsOpen, "%s at %s, driver %s proprietary", name, g.Address, d.LoadedVersion)
		case gen.Modules == "proprietary" && d.Flavour == "open" && !c.raised(CodeNeedsProprietary):
			c.raise(CodeNeedsProprietary, "%s at %s, driver %s open", name, g.Address, d.LoadedVersion)
		}
		if gen.LastBranch > 0 && branch(d.LoadedVersion) > gen.LastBranch && !c.raised(CodeDriverTooNew) {
			c.raise(CodeDriverTooNew, "%s at %s (last branch %d), driver %s", name, g.Address, gen.LastBranch, d.LoadedVersion)
		}
		if card.MinDriver != "" && compare(d.LoadedVersion, card.MinDriver) < 0 && !c.raised(CodeDriverTooOld) {
			c.raise(CodeDriverTooOld, "%s at %s needs %s, driver %s", name, g.Address, card.MinDriver, d.LoadedVersion)
		}
	}
}

// smi reads nvidia-smi's answer. Its exit codes: 6 no device, 9 driver not
// loaded, 12 library missing, 14 infoROM, 15 fallen off the bus, 18 mismatch.
func (c *check) smi(d host.Driver) {
	f := c.seen.SMI
	switch {
	case f.Missing():
		c.raise(CodeDriverLibrary, "module %s is loaded, there is no nvidia-smi", d.LoadedVersion)
		return
	case f.Unsure():
		if strings.HasPrefix(f.Reason(), "timeout") {
			c.raise(CodeSMIHangs, "nvidia-smi: %s", f.Reason())
		}
		return
	}
	s := f.Value
	switch {
	case strings.Contains(s.Message, "library version mismatch") || s.ExitCode == 18:
		library := d.LibraryVersion
		if library == "" {
			library = "of another version"
		}
		c.raise(CodeDriverMismatch, "module %s is loaded, the library is %s (%s)", d.LoadedVersion, library, s.Message)
		return
	case s.ExitCode == 12:
		c.raise(CodeDriverLibrary, "%s", s.Message)
		return
	case s.ExitCode == 9:
		c.raise(CodeDriverNotLoaded, "%s", s.Message)
		return
	}
	if len(s.Lost) > 0 {
		c.raise(CodeLost, "%s", strings.Join(s.Lost, ", "))
	}
	c.fewer(s)
}

// fewer explains by the kernel log why the driver sees less than the bus.
func (c *check) fewer(s host.SMI) {
	usable := 0
	for _, g := range c.gpus {
		if g.Driver != "vfio-pci" {
			usable++
		}
	}
	if len(s.GPUs) >= usable {
		return
	}
	// The sentences are broken over several lines of the log.
	switch {
	case c.logged("requires use of the nvidia open kernel modules"):
		if !c.raised(CodeNeedsOpen) {
			c.raise(CodeNeedsOpen, "the kernel log says so")
		}
	case c.logged("is not supported by open"):
		if !c.raised(CodeNeedsProprietary) {
			c.raise(CodeNeedsProprietary, "the kernel log says so")
		}
	case c.logged("is not supported by the") && c.logged("driver release"):
		if !c.raised(CodeDriverTooOld) {
			c.raise(CodeDriverTooOld, "the kernel log says that release %s does not know the card", c.seen.Driver.Value.LoadedVersion)
		}
	case c.logged("rminitadapter failed"):
		c.raise(CodeDriverInit, "%s", c.line("RmInitAdapter failed"))
	}
	c.raise(CodeCountDiffers, "%d on the PCI bus, %d in nvidia-smi%s", usable, len(s.GPUs), quoted(s.Message))
}

func quoted(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}

// logged searches the kernel log as one text, so that a sentence may run over lines.
func (c *check) logged(fragment string) bool {
	var b strings.Builder
	for _, m := range c.seen.KernelLog.Value {
		b.WriteString(strings.TrimSpace(strings.TrimPrefix(m.Text, "NVRM:")))
		b.WriteByte(' ')
	}
	return strings.Contains(strings.ToLower(strings.Join(strings.Fields(b.String()), " ")), fragment)
}

func (c *check) line(fragment string) string {
	for _, m := range c.seen.KernelLog.Value {
		if strings.Contains(m.Text, fragment) {
			return m.Text
		}
	}
	return ""
}

func has(list []string, s string) bool {
	for _, e := range list {
		if e == s {
			return true
		}
	}
	return false
}
