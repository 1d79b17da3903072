// Package scenario describes the GPUs of a simulated machine. What a probe, the
// NVIDIA tools and a container see of the machine is made from it alone.
package scenario

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
)

// Path is where a machine keeps its scenario; a machine without the file has
// no simulated GPUs.
const Path = "/etc/lab/gpu.json"

// Module flavours of the kernel driver.
const (
	Open        = "open"
	Proprietary = "proprietary"
)

// Scenario is one machine's GPUs, its driver, and what is wrong with them.
type Scenario struct {
	GPUs []GPU `json:"gpus"`
	// Driver is the version of driver and library, e.g. "580.95.05". Empty:
	// no driver is installed, the GPUs are only PCI devices.
	Driver string `json:"driver,omitempty"`
	// Modules is Open or Proprietary; empty means Open.
	Modules string `json:"modules,omitempty"`
	// CUDA is the newest CUDA version the driver supports, e.g. "13.0".
	CUDA string `json:"cuda,omitempty"`
	// NVSwitches is the number of NVSwitch bridges on the PCI bus.
	NVSwitches int    `json:"nvSwitches,omitempty"`
	Faults     Faults `json:"faults,omitzero"`
}

// GPU is one device. Its place in the list is its minor number.
type GPU struct {
	Model string `json:"model"`
	// PCI is vendor and device id as lspci -nn prints them, e.g. "10de:2331".
	PCI       string `json:"pci"`
	MemoryMiB int    `json:"memoryMiB"`
	// UUID is made from the machine's name when empty.
	UUID              string `json:"uuid,omitempty"`
	ComputeCapability string `json:"computeCapability"`
	// Bus is the PCI address, e.g. "0000:01:00.0"; chosen when empty.
	Bus string `json:"bus,omitempty"`
	// MIG is nil on a GPU that cannot be partitioned.
	MIG *MIG `json:"mig,omitempty"`
}

// MIG is the partitioning mode of a GPU: "Enabled" or "Disabled".
type MIG struct {
	Current string `json:"current"`
	Pending string `json:"pending"`
	// Slices are its MIG devices; a scenario file leaves them out, they are made by a MIG manager.
	Slices []Slice `json:"slices,omitempty"`
}

// Faults are provoked failures. The zero value is a healthy machine.
type Faults struct {
	// NotLoaded: the driver is installed but its modules are not loaded.
	NotLoaded bool `json:"notLoaded,omitempty"`
	// Library is the version of the user-space library when an upgrade
	// replaced it under the loaded module.
	Library string `json:"library,omitempty"`
	// Hidden GPUs are on the PCI bus, but the driver does not know them.
	Hidden []int `json:"hidden,omitempty"`
	// Lost GPUs have fallen off the bus; nvidia-smi names them in an error.
	Lost []int `json:"lost,omitempty"`
	// Hang: nvidia-smi never returns.
	Hang bool `json:"hang,omitempty"`
	// Nouveau: the nouveau module holds the GPUs.
	Nouveau bool `json:"nouveau,omitempty"`
	// Xid are driver errors written to the kernel log at boot.
	Xid []Xid `json:"xid,omitempty"`
	// Fabric is the fabric state all GPUs report, e.g. "In Progress". CUDA
	// fails until it is "Completed".
	Fabric string `json:"fabric,omitempty"`
	// ComputeFails: nvidia-smi looks well, but no kernel runs on these GPUs.
	ComputeFails []int `json:"computeFails,omitempty"`
	// HealedByReboot: the faults are there until the machine is rebooted; a
	// driver whose library was upgraded then runs in the new version.
	HealedByReboot bool `json:"healedByReboot,omitempty"`
}

// Xid is one "NVRM: Xid" line.
type Xid struct {
	GPU  int    `json:"gpu"`
	Code int    `json:"code"`
	Text string `json:"text,omitempty"`
}

// Library is the version of the user-space driver files.
func (s Scenario) Library() string {
	if s.Faults.Library != "" {
		return s.Faults.Library
	}
	return s.Driver
}

// Healed is the scenario after the reboot that ends its faults.
func (s Scenario) Healed() Scenario {
	s.Driver, s.Faults = s.Library(), Faults{}
	return s
}

// Loaded says whether the NVIDIA kernel modules are loaded.
func (s Scenario) Loaded() bool {
	return s.Driver != "" && !s.Faults.NotLoaded && !s.Faults.Nouveau
}

// For fills in what a machine of that name decides: UUIDs and bus addresses.
// The same name always gives the same UUIDs, other names others.
func (s Scenario) For(machine string) Scenario {
	gpus := make([]GPU, len(s.GPUs))
	copy(gpus, s.GPUs)
	for i := range gpus {
		if gpus[i].UUID == "" {
			gpus[i].UUID = uuid(machine, i)
		}
		if gpus[i].Bus == "" {
			gpus[i].Bus = fmt.Sprintf("0000:%02x:00.0", 0x41+i*0x10)
		}
	}
	s.GPUs = gpus
	if s.Modules == "" {
		s.Modules = Open
	}
	return s
}

func uuid(machine string, i int) string {
	h := sha256.Sum256(fmt.Appendf(nil, "%s/%d", machine, i))
	return fmt.Sprintf("GPU-%x-%x-%x-%x-%x", h[0:4], h[4:6], h[6:8], h[8:10], h[10:16])
}

// UUIDs lists the GPUs' UUIDs in order of their minor numbers.
func (s Scenario) UUIDs() []string {
	out := make([]string, len(s.GPUs))
	for i, g := range s.GPUs {
		out[i] = g.UUID
	}
	return out
}

// Load reads a scenario file.
func Load(path string) (Scenario, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Scenario{}, fmt.Errorf("reading scenario: %w", err)
	}
	var s Scenario
	if err := json.Unmarshal(data, &s); err != nil {
		return Scenario{}, fmt.Errorf("reading scenario %s: %w", path, err)
	}
	return s, s.Validate()
}

// Validate says what makes the scenario impossible.
func (s Scenario) Validate() error {
	version := regexp.MustCompile(`^\d+\.\d+(\.\d+)?$`)
	pci := regexp.MustCompile(`^10de:[0-9a-f]{4}$`)
	for _, v := range []string{s.Driver, s.Faults.Library} {
		if v != "" && !version.MatchString(v) {
			return fmt.Errorf("scenario: driver version %q is no version", v)
		}
	}
	for i, g := range s.GPUs {
		if !pci.MatchString(g.PCI) {
			return fmt.Errorf("scenario: gpu %d: PCI id %q is not of the form 10de:2331", i, g.PCI)
		}
		if _, err := strconv.ParseFloat(g.ComputeCapability, 64); err != nil {
			return fmt.Errorf("scenario: gpu %d: compute capability: %w", i, err)
		}
	}
	return nil
}
