// Package boot lays the simulated GPUs of a machine: what the kernel and the
// driver would show of them in /sys, /proc and /dev, and the driver's files.
// The mounts and nodes are gone after a reboot, so it runs at every boot.
package boot

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gpuctl/gpuctl/e2e/lab/gpu/scenario"
)

const (
	// parts is where the machine image keeps the driver's files.
	parts = "/usr/lib/lab/driver"
	// state holds the trees that are mounted over /sys and /proc.
	state = "/run/lab/gpu"
	// laid lists the files of the driver, to be removed when it goes.
	laid = "/var/lib/lab/gpu-files"
	// firstBoot holds the id of the boot that faults began in.
	firstBoot = "/var/lib/lab/gpu-first-boot"
	// loadedByHand is there after a modprobe, until the next boot.
	loadedByHand = "/run/lab/gpu-loaded"
	// modprobeRule lets modprobe load what is not loaded.
	modprobeRule = "/run/modprobe.d/lab-gpu.conf"
)

// Run lays what the scenario file says; without the file it removes what an
// earlier scenario left.
func Run() error {
	s, err := scenario.Load(scenario.Path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("finding the machine's name: %w", err)
	}
	if s, err = current(s.For(host)); err != nil {
		return err
	}
	if err := clear(); err != nil {
		return fmt.Errorf("removing the former GPUs: %w", err)
	}
	steps := []struct {
		what string
		do   func(scenario.Scenario) error
	}{
		{"PCI devices", layPCI},
		{"driver files", layDriver},
		{"kernel modules", layModules},
		{"/proc/driver/nvidia", layProc},
		{"device nodes", layNodes},
		{"MIG device nodes", layCaps},
		{"kernel log", logXid},
		{"note of the module", remember},
	}
	for _, step := range steps {
		if err := step.do(s); err != nil {
			return fmt.Errorf("laying %s: %w", step.what, err)
		}
	}
	return nil
}

// Faults takes in other faults of the scenario on a machine that lives: what the
// driver's library and the kernel log say. Mounts and device nodes stay as they
// are, since containers hold them.
func Faults() error {
	s, err := scenario.Load(scenario.Path)
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("finding the machine's name: %w", err)
	}
	if s, err = current(s.For(host)); err != nil {
		return err
	}
	if err := os.Remove(dmesg); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := layDriver(s); err != nil {
		return fmt.Errorf("laying driver files: %w", err)
	}
	return logXid(s)
}

// current applies what happened since the scenario was written: a reboot, or a
// modprobe in this boot.
func current(s scenario.Scenario) (scenario.Scenario, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return s, err
	}
	first, err := os.ReadFile(firstBoot)
	switch {
	case errors.Is(err, os.ErrNotExist):
		err = write(firstBoot, string(boot))
	case err == nil && s.Faults.HealedByReboot && string(first) != string(boot):
		s = s.Healed()
	}
	if err != nil {
		return s, err
	}
	if s.Faults.Nouveau && nouveauGone(first, boot) {
		s.Faults.Nouveau = false
	}
	if s, err = withPackages(s); err != nil {
		return s, err
	}
	if _, err := os.Stat(loadedByHand); err == nil {
		s.Faults.NotLoaded = false
	}
	return withMIG(s, string(boot))
}

// Load is what modprobe runs for a driver that is not loaded.
func Load() error {
	if err := write(loadedByHand, ""); err != nil {
		return err
	}
	return Run()
}

// clear takes away what a former run has mounted, made and laid.
func clear() error {
	for _, at := range []string{"/proc/devices", "/proc/driver", "/sys/module", "/sys/bus/pci/devices"} {
		mounted, err := isMounted(at)
		if err != nil {
			return err
		}
		if mounted {
			if err := unix.Unmount(at, unix.MNT_DETACH); err != nil {
				return fmt.Errorf("unmounting %s: %w", at, err)
			}
		}
	}
	nodes, _ := filepath.Glob("/dev/nvidia*")
	for _, n := range nodes {
		if err := os.RemoveAll(n); err != nil {
			return err
		}
	}
	files, err := os.ReadFile(laid)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, f := range strings.Fields(string(files)) {
		if err := os.Remove(f); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return os.RemoveAll(state)
}

// isMounted says whether something is mounted at exactly that path.
func isMounted(path string) (bool, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) > 4 && f[4] == path {
			return true, nil
		}
	}
	return false, nil
}

// over shows the tree from above what is at path, which must exist.
func over(from, path string) error {
	if err := unix.Mount("lab-gpu", path, "overlay", 0, "lowerdir="+from+":"+path); err != nil {
		return fmt.Errorf("overlaying %s: %w", path, err)
	}
	return nil
}

func bind(from, path string) error {
	if err := unix.Mount(from, path, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("binding %s: %w", path, err)
	}
	return nil
}

// write makes a file with its directories.
func write(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

func command(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(string(out)))
	}
	return nil
}
