package nvidia

import (
	"fmt"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/internal/diag"
)

// course is how a machine gets to a good driver. The zero value is that it has
// one, or that gpuctl has no business with it.
type course struct {
	choice   Choice
	packages DriverPackages
	// install says why packages are to be changed, "" where they are as wanted.
	install string
	// boot says why what is on disk is not what runs, "" where it is.
	boot string
	// loadable: loading the module may do, without a reboot.
	loadable bool
	// obstacle is why none of that can be done.
	obstacle *diag.Finding
	// heals are findings that the course ends.
	heals map[diag.Code]bool
}

func (c course) pending() bool { return c.install != "" || c.boot != "" }

// provides says whether gpuctl brings the driver in this mode.
func (w Want) provides() bool {
	return w.Mode == "" || w.Mode == ModeAuto || w.Mode == ModePackage
}

// courseOf holds wish and facts against each other. A driver that was not
// installed from packages is left alone: apt cannot replace it.
func courseOf(want Want, seen host.Facts) course {
	d := seen.Driver.Value
	if !want.provides() || !seen.Driver.Has() || seen.SMI.Unsure() || d.Runfile || len(GPUs(seen)) == 0 {
		return course{}
	}
	c := course{heals: map[diag.Code]bool{}}
	choice, no := Choose(want, seen)
	if no == nil {
		c.choice = choice
	}
	c.whyInstall(want, seen)
	if no == nil && c.install != "" {
		c.packages, no = PackagesFor(want, seen, choice)
	}
	c.whyBoot(seen)
	if !c.pending() {
		return course{}
	}
	switch {
	case no != nil && c.install != "":
		c.obstacle = no
	case want.Driver.NoReboot && c.boot != "" && !c.loadable:
		f := diag.Found(CodeRebootNeeded, want.Machine, c.boot+", and driver.reboot is never")
		c.obstacle = &f
	}
	return c
}

// whyInstall looks at what is on disk.
func (c *course) whyInstall(want Want, seen host.Facts) {
	d := seen.Driver.Value
	flavour, version := onDisk(d)
	nouveau := held(seen) > 0
	because := func(reason string, codes ...diag.Code) {
		c.install = reason
		for _, code := range codes {
			c.heals[code] = true
		}
	}
	switch {
	case version == "" && d.LibraryVersion == "" && seen.SMI.Missing():
		because("there is no driver", CodeDriverMissing)
	case version == "":
		if origin(seen) != "" {
			because("there is no module for kernel "+seen.System.Value.Kernel, CodeDriverNotLoaded)
		}
	case c.choice.Branch == 0:
		// no driver fits: what is there is judged by Findings alone
	case want.Driver.Explicit && branch(version) != c.choice.Branch:
		because(fmt.Sprintf("the driver is %s, wanted is branch %d", version, c.choice.Branch), CodeDriverTooOld, CodeDriverTooNew)
	case flavour != "" && flavour != c.choice.Flavour && (demanded(seen) == c.choice.Flavour || want.Driver.Modules == c.choice.Flavour):
		because(fmt.Sprintf("the modules are %s: %s", flavour, c.choice.Reason), CodeNeedsOpen, CodeNeedsProprietary)
	case outOfRange(seen, version):
		because(fmt.Sprintf("driver %s does not know all cards", version), CodeDriverTooOld, CodeDriverTooNew)
	case nouveau && !d.NouveauBlacklisted:
		because("nouveau holds the GPUs and is not blacklisted")
	}
	if c.install != "" && nouveau {
		c.heals[CodeNouveau] = true
	}
	if c.install != "" {
		c.heals[CodeCountDiffers], c.heals[CodeDriverNotLoaded] = true, true
	}
}

// whyBoot compares what runs with what is on disk, or will be.
func (c *course) whyBoot(seen host.Facts) {
	d := seen.Driver.Value
	flavour, version := onDisk(d)
	if version == "" && c.install == "" {
		return
	}
	switch {
	case held(seen) > 0:
		c.boot = fmt.Sprintf("nouveau holds %d GPUs", held(seen))
		c.heals[CodeNouveau] = true
	case d.LoadedVersion != "" && c.install != "":
		c.boot = "module " + d.LoadedVersion + " is loaded"
	case d.LoadedVersion == "" && c.install != "":
		c.boot, c.loadable = "a new driver may not load at once", true
	case d.LoadedVersion == "":
		c.boot, c.loadable = "driver "+version+" is installed and not loaded", true
	case d.LoadedVersion != version:
		c.boot = fmt.Sprintf("module %s is loaded, %s is installed", d.LoadedVersion, version)
	case d.Flavour != "" && flavour != "" && d.Flavour != flavour:
		c.boot = fmt.Sprintf("the %s module is loaded, the %s one is installed", d.Flavour, flavour)
	default:
		return
	}
	for _, code := range []diag.Code{CodeDriverNotLoaded, CodeDriverMissing, CodeDriverMismatch, CodeCountDiffers, CodeNeedsOpen, CodeNeedsProprietary, CodeDriverTooNew, CodeDriverTooOld} {
		c.heals[code] = c.heals[code] || code == CodeDriverNotLoaded || d.LoadedVersion != "" || c.install != ""
	}
}

// onDisk is the driver that the next load takes.
func onDisk(d host.Driver) (flavour, version string) {
	flavour = d.FileFlavour
	if flavour == "" && d.FileVersion == d.LoadedVersion {
		flavour = d.Flavour
	}
	return flavour, d.FileVersion
}

// held counts the GPUs that nouveau drives.
func held(seen host.Facts) int {
	n := 0
	for _, g := range GPUs(seen) {
		if g.Driver == "nouveau" {
			n++
		}
	}
	return n
}

// demanded is the only flavour that serves a card of the machine, "" where both do.
func demanded(seen host.Facts) string {
	for _, g := range GPUs(seen) {
		if f := demandOf(g).flavour; f != "" {
			return f
		}
	}
	return ""
}

// outOfRange says whether a card is too old or too new for a driver.
func outOfRange(seen host.Facts, version string) bool {
	for _, g := range GPUs(seen) {
		d, card := demandOf(g), cards()[g.Device]
		if (d.last > 0 && branch(version) > d.last) || (card.MinDriver != "" && compare(version, card.MinDriver) < 0) {
			return true
		}
	}
	return false
}
