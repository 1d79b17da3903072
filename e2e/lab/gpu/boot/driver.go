package boot

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gpuctl/gpuctl/e2e/lab/gpu/scenario"
)

const libraries = "/usr/lib/x86_64-linux-gnu"

// layDriver lays the files that a driver package would: the libraries, with
// the scenario in libnvidia-ml.so, nvidia-smi, and the kernel modules.
func layDriver(s scenario.Scenario) error {
	if s.Driver == "" {
		return nil
	}
	var files []string
	nvml, err := os.ReadFile(filepath.Join(parts, "libnvidia-ml.so"))
	if err != nil {
		return err
	}
	if nvml, err = s.AppendTo(nvml); err != nil {
		return err
	}
	cuda, err := os.ReadFile(filepath.Join(parts, "libcuda.so"))
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{"libnvidia-ml.so": nvml, "libcuda.so": cuda} {
		made, err := library(name, s.Library(), data)
		if err != nil {
			return err
		}
		files = append(files, made...)
	}
	smi, err := os.ReadFile(filepath.Join(parts, "nvidia-smi"))
	if err != nil {
		return err
	}
	if err := replace("/usr/bin/nvidia-smi", smi, 0o755); err != nil {
		return err
	}
	modules, err := moduleFiles(s)
	if err != nil {
		return err
	}
	files = append(append(files, "/usr/bin/nvidia-smi"), modules...)
	if err := write(laid, strings.Join(files, "\n")+"\n"); err != nil {
		return err
	}
	if err := command("ldconfig"); err != nil {
		return err
	}
	return command("depmod")
}

// library lays name.version and the links that the real packages have.
func library(name, version string, data []byte) ([]string, error) {
	path := filepath.Join(libraries, name)
	file := path + "." + version
	if err := replace(file, data, 0o644); err != nil {
		return nil, err
	}
	made := []string{file, path + ".1", path}
	for _, l := range made[1:] {
		if err := os.Remove(l); err != nil && !os.IsNotExist(err) {
			return nil, err
		}
		if err := os.Symlink(filepath.Base(file), l); err != nil {
			return nil, err
		}
	}
	return made, nil
}

// replace renames into place, so that a process that has the old file mapped
// keeps it.
func replace(path string, data []byte, mode os.FileMode) error {
	tmp := path + ".lab-new"
	if err := os.WriteFile(tmp, data, mode); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

// moduleNames are the driver's kernel modules, dependencies first.
func moduleNames() []string {
	return []string{"nvidia", "nvidia-uvm", "nvidia-modeset", "nvidia-drm"}
}

// moduleFiles lays the .ko files where dkms would, with the driver's version.
func moduleFiles(s scenario.Scenario) ([]string, error) {
	release, err := kernelRelease()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join("/lib/modules", release, "updates/dkms")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	const placeholder = "@VERSION@                      "
	disk := moduleVersion(s)
	var made []string
	for _, name := range moduleNames() {
		data, err := os.ReadFile(filepath.Join(parts, s.Modules, name+".ko"))
		if err != nil {
			return nil, err
		}
		version := fmt.Appendf(nil, "%s%s", disk, strings.Repeat("\x00", len(placeholder)-len(disk)))
		path := filepath.Join(dir, name+".ko")
		if err := replace(path, bytes.Replace(data, []byte(placeholder), version, 1), 0o644); err != nil {
			return nil, err
		}
		made = append(made, path)
	}
	return made, nil
}

func kernelRelease() (string, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "", err
	}
	return unix.ByteSliceToString(u.Release[:]), nil
}
