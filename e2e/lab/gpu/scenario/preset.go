package scenario

// The driver of the presets: the last 580 of 2025, which knows CUDA 13.0.
const (
	presetDriver = "580.95.05"
	presetCUDA   = "13.0"
)

// H100 is a healthy machine with n H100 PCIe cards. PCI ids:
// https://pci-ids.ucw.cz/read/PC/10de.
func H100(n int) Scenario {
	return preset(n, GPU{
		Model: "NVIDIA H100 PCIe", PCI: "10de:2331", MemoryMiB: 81559, ComputeCapability: "9.0",
		MIG: &MIG{Current: "Disabled", Pending: "Disabled"},
	}, Open)
}

// A100 is a healthy machine with n A100 PCIe 80 GB cards.
func A100(n int) Scenario {
	return preset(n, GPU{
		Model: "NVIDIA A100 80GB PCIe", PCI: "10de:20b5", MemoryMiB: 81920, ComputeCapability: "8.0",
		MIG: &MIG{Current: "Disabled", Pending: "Disabled"},
	}, Open)
}

// T4 is a healthy machine with n Tesla T4 cards, which know no MIG.
func T4(n int) Scenario {
	return preset(n, GPU{
		Model: "Tesla T4", PCI: "10de:1eb8", MemoryMiB: 15360, ComputeCapability: "7.5",
	}, Open)
}

// HGX is an eight-GPU H100 SXM board with four NVSwitches, whose fabric is up.
func HGX() Scenario {
	s := preset(8, GPU{
		Model: "NVIDIA H100 80GB HBM3", PCI: "10de:2330", MemoryMiB: 81559, ComputeCapability: "9.0",
		MIG: &MIG{Current: "Disabled", Pending: "Disabled"},
	}, Open)
	s.NVSwitches = 4
	return s
}

// NoDriver is a machine with n H100 PCIe cards and a plain image: a driver
// package makes the cards come alive.
func NoDriver(n int) Scenario {
	s := H100(n)
	s.Driver = ""
	return s
}

// Nouveau is NoDriver whose kernel has given the cards to nouveau; a boot with
// nouveau on a blacklist ends that.
func Nouveau(n int) Scenario {
	s := NoDriver(n)
	s.Faults.Nouveau = true
	return s
}

func preset(n int, g GPU, modules string) Scenario {
	s := Scenario{Driver: presetDriver, CUDA: presetCUDA, Modules: modules}
	for range n {
		s.GPUs = append(s.GPUs, g)
	}
	return s
}
