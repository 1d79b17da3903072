package nvidia

import "github.com/gpuctl/gpuctl/bootstrap/host"

// Model names a card by its PCI id, as pci.ids does; unknown ids stand as they are.
func Model(d host.PCIDevice) string {
	if card, ok := cards()[d.Device]; ok {
		return card.Model
	}
	return "NVIDIA " + d.Vendor + ":" + d.Device
}
