package boot

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gpuctl/gpuctl/e2e/lab/gpu/scenario"
)

// pciDevice is one function on the bus, with what lspci and NFD read of it.
type pciDevice struct {
	bus, id string // "0000:41:00.0", "10de:2331"
	class   uint32 // 0x030200: 3D controller
	driver  string // bound kernel driver, or none
}

const (
	class3D     = 0x030200
	classBridge = 0x068000
)

func devices(s scenario.Scenario) []pciDevice {
	var out []pciDevice
	driver := ""
	switch {
	case s.Faults.Nouveau:
		driver = "nouveau"
	case s.Loaded():
		driver = "nvidia"
	}
	for _, g := range s.GPUs {
		out = append(out, pciDevice{bus: g.Bus, id: g.PCI, class: class3D, driver: driver})
	}
	for i := range s.NVSwitches {
		// GH100 [H100 NVSwitch], https://pci-ids.ucw.cz/read/PC/10de/22a3
		sw := pciDevice{bus: fmt.Sprintf("0000:%02x:00.0", 5+i), id: "10de:22a3", class: classBridge}
		if driver == "nvidia" {
			sw.driver = "nvidia-nvswitch"
		}
		out = append(out, sw)
	}
	return out
}

func layPCI(s scenario.Scenario) error {
	if len(s.GPUs) == 0 {
		return nil
	}
	tree := filepath.Join(state, "pci")
	for _, d := range devices(s) {
		if err := d.lay(filepath.Join(tree, d.bus)); err != nil {
			return err
		}
	}
	return over(tree, "/sys/bus/pci/devices")
}

func (d pciDevice) lay(dir string) error {
	vendor, device, _ := strings.Cut(d.id, ":")
	files := map[string]string{
		"vendor": "0x" + vendor, "device": "0x" + device, "class": fmt.Sprintf("0x%06x", d.class),
		"subsystem_vendor": "0x" + vendor, "subsystem_device": "0x1626", "revision": "0xa1",
		"numa_node": "0", "irq": "0", "enable": "1", "local_cpulist": "0-1", "driver_override": "(null)",
		"current_link_speed": "32.0 GT/s PCIe", "current_link_width": "16",
		"modalias": fmt.Sprintf("pci:v0000%sd0000%ssv0000%ssd00001626bc%02Xsc%02Xi%02X", strings.ToUpper(vendor),
			strings.ToUpper(device), strings.ToUpper(vendor), d.class>>16, d.class>>8&0xff, d.class&0xff),
		"uevent": fmt.Sprintf("DRIVER=%s\nPCI_CLASS=%X\nPCI_ID=%s\nPCI_SLOT_NAME=%s", d.driver, d.class,
			strings.ToUpper(d.id), d.bus),
		"resource": strings.TrimSuffix(strings.Repeat("0x0000000000000000 0x0000000000000000 0x0000000000000000\n", 13), "\n"),
	}
	for name, text := range files {
		if err := write(filepath.Join(dir, name), text+"\n"); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "config"), d.config(), 0o644); err != nil {
		return err
	}
	if d.driver == "" {
		return nil
	}
	return os.Symlink("../../../bus/pci/drivers/"+d.driver, filepath.Join(dir, "driver"))
}

// config is the head of the configuration space: ids, class, header type 0.
func (d pciDevice) config() []byte {
	var vendor, device uint16
	_, _ = fmt.Sscanf(d.id, "%x:%x", &vendor, &device)
	c := make([]byte, 256)
	c[0], c[1] = byte(vendor), byte(vendor>>8)
	c[2], c[3] = byte(device), byte(device>>8)
	c[4] = 0x07 // I/O, memory, bus master
	c[8] = 0xa1
	c[9], c[10], c[11] = byte(d.class), byte(d.class>>8), byte(d.class>>16)
	c[0x2c], c[0x2d], c[0x2e], c[0x2f] = byte(vendor), byte(vendor>>8), 0x26, 0x16
	return c
}
