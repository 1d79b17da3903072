package boot

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/gpuctl/gpuctl/e2e/lab/gpu/scenario"
)

// Files by which the stand-in driver packages say what they brought.
const (
	// InstalledModules holds flavour and version of the kernel modules.
	InstalledModules = "/usr/lib/lab/installed/modules"
	// InstalledLibrary holds the version of the libraries.
	InstalledLibrary = "/usr/lib/lab/installed/library"
	// InstalledFabric is the unit of the fabric manager, without which the
	// fabric of a board with NVSwitches never gets ready.
	InstalledFabric = "/lib/systemd/system/nvidia-fabricmanager.service"
	// running holds the version of the module that this boot has loaded.
	running = "/run/lab/gpu-running"
	// installedNow is there from an installation until the next boot: until then
	// the driver is on disk and not loaded.
	installedNow = "/run/lab/gpu-installed-now"
)

// Installed is what a driver package runs when it is configured.
func Installed() error {
	if err := write(installedNow, ""); err != nil {
		return err
	}
	return Run()
}

// withPackages adds the driver that packages brought to a scenario without one.
func withPackages(s scenario.Scenario) (scenario.Scenario, error) {
	if s.Driver != "" {
		return s, nil
	}
	modules, err := os.ReadFile(InstalledModules)
	library, err2 := os.ReadFile(InstalledLibrary)
	if err := errors.Join(err, err2); errors.Is(err, os.ErrNotExist) {
		return s, nil // none, or one half: dpkg configures the other one next
	} else if err != nil {
		return s, err
	}
	flavour, version, _ := strings.Cut(strings.TrimSpace(string(modules)), " ")
	s.Driver, s.Modules = version, flavour
	if _, err := os.Stat(InstalledFabric); err != nil && s.NVSwitches > 0 {
		s.Faults.Fabric = "In Progress" // nobody manages it yet
	}
	if l := strings.TrimSpace(string(library)); l != version {
		s.Faults.Library = l
	}
	if loaded, err := os.ReadFile(running); err == nil {
		if string(loaded) != version { // the old module goes on under the new library
			s.Driver, s.Faults.Library = string(loaded), version
		}
		return s, nil
	}
	if _, err := os.Stat(installedNow); err == nil {
		s.Faults.NotLoaded = true
	}
	return s, nil
}

// remember keeps which module this boot has loaded.
func remember(s scenario.Scenario) error {
	if !s.Loaded() {
		return nil
	}
	return write(running, s.Driver)
}

// moduleVersion is that of the modules on disk: what packages brought last, or
// the scenario's. An upgrade that replaced the library replaced them too.
func moduleVersion(s scenario.Scenario) string {
	if text, err := os.ReadFile(InstalledModules); err == nil {
		if _, version, ok := strings.Cut(strings.TrimSpace(string(text)), " "); ok {
			return version
		}
	}
	return s.Library()
}

// nouveauGone says whether a boot after the first one keeps nouveau away.
func nouveauGone(first, boot []byte) bool {
	if len(first) == 0 || string(first) == string(boot) {
		return false
	}
	files, _ := filepath.Glob("/etc/modprobe.d/*.conf")
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err == nil && regexp.MustCompile(`(?m)^blacklist nouveau$`).Match(text) {
			return true
		}
	}
	return false
}
