package boot

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gpuctl/gpuctl/e2e/lab/gpu/scenario"
)

// Device majors: 195 is registered for NVIDIA, that of uvm is dynamic on a
// real kernel. https://www.kernel.org/doc/Documentation/admin-guide/devices.txt
const (
	majorGPU = 195
	majorUVM = 510
)

// layModules shows the loaded modules in /sys/module. With initstate "live"
// modprobe and the probe of a tool both see them as loaded.
func layModules(s scenario.Scenario) error {
	tree := filepath.Join(state, "module")
	names := []string{}
	if s.Loaded() {
		names = moduleNames()
	}
	if s.Faults.Nouveau {
		names = append(names, "nouveau")
	}
	rule := ""
	if s.Driver != "" && s.Faults.NotLoaded {
		rule = "install nvidia /usr/lib/lab/gpu-boot load\n"
	}
	if err := write(modprobeRule, rule); err != nil {
		return err
	}
	if len(names) == 0 {
		return nil
	}
	for i, name := range names {
		dir := filepath.Join(tree, strings.ReplaceAll(name, "-", "_"))
		files := map[string]string{"initstate": "live", "refcnt": "0", "coresize": "2400256", "taint": "OE",
			"srcversion": "0A5DBCCB0C9B9A1E5E0D5B0"}
		if name != "nouveau" {
			files["version"] = s.Driver
		}
		if i == 0 {
			files["refcnt"] = fmt.Sprint(len(s.GPUs))
		}
		for file, text := range files {
			if err := write(filepath.Join(dir, file), text+"\n"); err != nil {
				return err
			}
		}
		if err := os.MkdirAll(filepath.Join(dir, "holders"), 0o755); err != nil {
			return err
		}
	}
	return over(tree, "/sys/module")
}

func layProc(s scenario.Scenario) error {
	if !s.Loaded() {
		return nil
	}
	tree := filepath.Join(state, "proc")
	version := "NVIDIA UNIX Open Kernel Module for x86_64  " + s.Driver +
		"  Release Build  (dvs-builder@U22-I3-AE18-23-3)  Tue Sep 23 09:55:41 UTC 2025"
	if s.Modules == scenario.Proprietary {
		version = "NVIDIA UNIX x86_64 Kernel Module  " + s.Driver + "  Tue Sep 23 10:11:16 UTC 2025"
	}
	files := map[string]string{
		"nvidia/version": "NVRM version: " + version + "\nGCC version:  gcc version 12.2.0 (Debian 12.2.0-14+deb12u1) \n",
		// With 1 the toolkit would hide the file in a container, whose own /proc
		// has none to hide.
		"nvidia/params": "ResmanDebugLevel: 4294967295\nModifyDeviceFiles: 0\nDeviceFileUID: 0\nDeviceFileGID: 0\nDeviceFileMode: 438\n",
	}
	for i, g := range s.GPUs {
		if slices.Contains(s.Faults.Hidden, i) {
			continue
		}
		files["nvidia/gpus/"+g.Bus+"/information"] = fmt.Sprintf("Model: \t\t %s\nIRQ:   \t\t 0\nGPU UUID: \t %s\n"+
			"Video BIOS: \t 96.00.89.00.01\nBus Type: \t PCIe\nDMA Size: \t 52 bits\nDMA Mask: \t 0xfffffffffffff\n"+
			"Bus Location: \t %s\nDevice Minor: \t %d\nGPU Firmware: \t %s\nGPU Excluded:\t No\n",
			g.Model, g.UUID, g.Bus, i, s.Driver)
	}
	if slices.ContainsFunc(s.GPUs, func(g scenario.GPU) bool { return g.MIG != nil }) {
		files["nvidia-caps/mig-minors"] = scenario.MIGMinors(len(s.GPUs))
	}
	for i := range s.NVSwitches {
		files[fmt.Sprintf("nvidia-nvswitch/devices/0000:%02x:00.0", 5+i)] = fmt.Sprintf("minor: %d\n", i)
	}
	for name, text := range files {
		if err := write(filepath.Join(tree, name), text); err != nil {
			return err
		}
	}
	if err := bind(tree, "/proc/driver"); err != nil {
		return err
	}
	known, err := os.ReadFile("/proc/devices")
	if err != nil {
		return err
	}
	list := filepath.Join(state, "devices")
	char := fmt.Sprintf("Character devices:\n%3d nvidia\n%3d nvidia-uvm\n%3d nvidiactl\n%3d nvidia-modeset\n%3d nvidia-caps\n",
		majorGPU, majorUVM, majorGPU, majorGPU, majorCap)
	if err := write(list, strings.Replace(string(known), "Character devices:\n", char, 1)); err != nil {
		return err
	}
	return bind(list, "/proc/devices")
}

// layNodes makes the device nodes. They are nodes of no driver: they exist,
// can be injected and counted, and opening one fails.
func layNodes(s scenario.Scenario) error {
	if !s.Loaded() {
		return nil
	}
	nodes := map[string]uint64{
		"nvidiactl": unix.Mkdev(majorGPU, 255), "nvidia-modeset": unix.Mkdev(majorGPU, 254),
		"nvidia-uvm": unix.Mkdev(majorUVM, 0), "nvidia-uvm-tools": unix.Mkdev(majorUVM, 1),
	}
	for i := range s.GPUs {
		if !slices.Contains(s.Faults.Hidden, i) {
			nodes[fmt.Sprintf("nvidia%d", i)] = unix.Mkdev(majorGPU, uint32(i))
		}
	}
	// udev makes this directory on every real machine.
	if err := os.MkdirAll("/dev/char", 0o755); err != nil {
		return err
	}
	for name, dev := range nodes {
		path := filepath.Join("/dev", name)
		if err := unix.Mknod(path, unix.S_IFCHR|0o666, int(dev)); err != nil {
			return fmt.Errorf("making %s: %w", path, err)
		}
		if err := os.Chmod(path, 0o666); err != nil {
			return err
		}
	}
	return nil
}

// dmesg is found before the system's own.
const dmesg = "/usr/local/bin/dmesg"

// dmesgScript shows the machine's own Xid lines. All machines of a lab share
// the host's kernel log, so nothing is written to it, and what another machine
// might have there is left out.
const dmesgScript = `#!/bin/sh
/usr/bin/dmesg "$@" | grep -v NVRM
cat /run/lab/gpu/xid
`

// logXid lets dmesg say the scenario's Xid lines.
func logXid(s scenario.Scenario) error {
	var lines strings.Builder
	for _, x := range s.Faults.Xid {
		if x.GPU < len(s.GPUs) {
			bus := strings.TrimSuffix(s.GPUs[x.GPU].Bus, ".0")
			fmt.Fprintf(&lines, "[   41.%06d] NVRM: Xid (PCI:%s): %d, %s\n", lines.Len(), bus, x.Code, x.Text)
		}
	}
	if s.Faults.Nouveau {
		fmt.Fprintf(&lines, "[   40.976351] NVRM: The NVIDIA probe routine was not called for %d device(s).\n", len(s.GPUs))
	}
	if lines.Len() == 0 {
		return nil
	}
	if err := write(filepath.Join(state, "xid"), lines.String()); err != nil {
		return err
	}
	if err := replace(dmesg, []byte(dmesgScript), 0o755); err != nil {
		return err
	}
	return alsoLaid(dmesg)
}

// alsoLaid adds a file to those that go with the scenario.
func alsoLaid(path string) error {
	known, err := os.ReadFile(laid)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return write(laid, string(known)+path+"\n")
}
