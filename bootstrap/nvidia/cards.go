package nvidia

import (
	"strconv"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/internal/cuda"
)

// PCI vendors and the classes under which GPUs appear.
const (
	vendorNVIDIA = "10de"
	vendorAMD    = "1002"
	vendorIntel  = "8086"
	vendorHabana = "1da3"
)

// Generation is what all cards of an architecture share.
type Generation struct {
	Name string
	// Modules is the kernel module flavour it runs with: "open", "proprietary" or "either".
	Modules string
	// LastBranch is the last driver branch that supports it, 0 while there is none.
	LastBranch int
}

// The flavours and the last branch come from NVIDIA's driver installation guide
// and its notice on Maxwell, Pascal and Volta: open modules from Turing on, the
// only ones for Blackwell; 580 is the last branch for what is older than Turing.
func generation(name string) Generation {
	switch name {
	case "Kepler or older":
		return Generation{name, "proprietary", 470}
	case "Maxwell", "Pascal", "Volta":
		return Generation{name, "proprietary", 580}
	case "Blackwell":
		return Generation{name, "open", 0}
	}
	return Generation{name, "either", 0}
}

// Card is one model.
type Card struct {
	// Model is its name as in pci.ids.
	Model string
	// Compute is the CUDA compute capability.
	Compute string
	// MinDriver is the first driver that knows it, "" where that is not recorded.
	MinDriver string
	// OpenOnly marks cards that need the open modules though their generation does not.
	OpenOnly bool
}

// cards are the rented models, by PCI device id. Names: pci.ids. Compute
// capability: developer.nvidia.com/cuda-gpus. Minimum drivers: platform support
// page of the GPU Operator 26.7. Ids of Hopper and later: the MIG configuration
// of the GPU Operator 26.7.
func cards() map[string]Card {
	return map[string]Card{
		"15f8": {Model: "Tesla P100 PCIe 16GB", Compute: "6.0"}, "15f9": {Model: "Tesla P100 SXM2 16GB", Compute: "6.0"},
		"1b38": {Model: "Tesla P40", Compute: "6.1"}, "1bb3": {Model: "Tesla P4", Compute: "6.1"},
		"1db1": {Model: "Tesla V100 SXM2 16GB", Compute: "7.0"}, "1db4": {Model: "Tesla V100 PCIe 16GB", Compute: "7.0"},
		"1db5": {Model: "Tesla V100 SXM2 32GB", Compute: "7.0"}, "1db6": {Model: "Tesla V100 PCIe 32GB", Compute: "7.0"},
		"1df6": {Model: "Tesla V100S PCIe 32GB", Compute: "7.0"},
		"1eb8": {Model: "Tesla T4", Compute: "7.5"}, "1e36": {Model: "Quadro RTX 6000", Compute: "7.5"},
		"20b0": {Model: "A100 SXM4 40GB", Compute: "8.0"}, "20b1": {Model: "A100 PCIe 40GB", Compute: "8.0"},
		"20b2": {Model: "A100 SXM4 80GB", Compute: "8.0"}, "20b5": {Model: "A100 PCIe 80GB", Compute: "8.0"},
		"20f1": {Model: "A100 PCIe 40GB", Compute: "8.0"}, "20b7": {Model: "A30", Compute: "8.0"},
		"20f3": {Model: "A800 SXM4 80GB", Compute: "8.0"}, "20f5": {Model: "A800 PCIe 80GB", Compute: "8.0"},
		"2204": {Model: "GeForce RTX 3090", Compute: "8.6"}, "2230": {Model: "RTX A6000", Compute: "8.6"},
		"2231": {Model: "RTX A5000", Compute: "8.6"}, "2235": {Model: "A40", Compute: "8.6"},
		"2236": {Model: "A10", Compute: "8.6"}, "2237": {Model: "A10G", Compute: "8.6"},
		"24b0": {Model: "RTX A4000", Compute: "8.6"}, "25b6": {Model: "A2 / A16", Compute: "8.6"},
		"2684": {Model: "GeForce RTX 4090", Compute: "8.9"}, "26b1": {Model: "RTX 6000 Ada Generation", Compute: "8.9"},
		"26b5": {Model: "L40", Compute: "8.9"}, "26b9": {Model: "L40S", Compute: "8.9"}, "27b8": {Model: "L4", Compute: "8.9"},
		"2321": {Model: "H100 NVL", Compute: "9.0"}, "2322": {Model: "H800 PCIe", Compute: "9.0"},
		"2324": {Model: "H800", Compute: "9.0"}, "2329": {Model: "H20", Compute: "9.0"},
		"2330": {Model: "H100 SXM5 80GB", Compute: "9.0"}, "2331": {Model: "H100 PCIe", Compute: "9.0"},
		"2335": {Model: "H200 SXM 141GB", Compute: "9.0"}, "233b": {Model: "H200 NVL", Compute: "9.0"},
		"2342": {Model: "GH200 120GB / 480GB", Compute: "9.0", OpenOnly: true}, "2348": {Model: "GH200 144G HBM3e", Compute: "9.0", OpenOnly: true},
		"2901": {Model: "B200", Compute: "10.0", MinDriver: "570.133.20"}, "2941": {Model: "GB200", Compute: "10.0", MinDriver: "570.133.20"},
		"3182": {Model: "B300 SXM6", Compute: "10.3"}, "31c2": {Model: "GB300", Compute: "10.3"},
		"2b85": {Model: "GeForce RTX 5090", Compute: "12.0"},
		"2bb1": {Model: "RTX PRO 6000 Blackwell Workstation Edition", Compute: "12.0", MinDriver: "575.57.08"},
		"2bb5": {Model: "RTX PRO 6000 Blackwell Server Edition", Compute: "12.0", MinDriver: "575.57.08"},
	}
}

// generationOf tells the architecture from a device id, by the ranges in which
// pci.ids lists the chips (GM, GP, GV, TU, GA, GH, AD, GB); "" where it is in none.
func generationOf(device string) (Generation, bool) {
	n, err := strconv.ParseUint(device, 16, 16)
	if err != nil {
		return Generation{}, false
	}
	for _, r := range []struct {
		from, to uint64
		name     string
	}{
		{0x0000, 0x133f, "Kepler or older"},
		{0x1340, 0x15ef, "Maxwell"}, {0x15f0, 0x15ff, "Pascal"}, {0x1600, 0x17ff, "Maxwell"},
		{0x1b00, 0x1d80, "Pascal"}, {0x1d81, 0x1d81, "Volta"}, {0x1d82, 0x1daf, "Pascal"}, {0x1db0, 0x1dff, "Volta"},
		{0x1e00, 0x1fff, "Turing"}, {0x2080, 0x20ff, "Ampere"}, {0x2180, 0x21ff, "Turing"}, {0x2200, 0x22ff, "Ampere"},
		{0x2300, 0x23ff, "Hopper"}, {0x2400, 0x25ff, "Ampere"}, {0x2600, 0x28ff, "Ada"},
		{0x2900, 0x2fff, "Blackwell"}, {0x3180, 0x32ff, "Blackwell"},
	} {
		if n >= r.from && n <= r.to {
			return generation(r.name), true
		}
	}
	return Generation{}, false
}

// GPUs are the NVIDIA GPUs on the PCI bus: by vendor and class number, never by
// a name (a network card may call itself NVIDIA too).
func GPUs(seen host.Facts) []host.PCIDevice {
	var out []host.PCIDevice
	for _, d := range seen.PCI.Value {
		if d.Vendor == vendorNVIDIA && (d.Class == "0300" || d.Class == "0302" || d.Class == "0380") {
			out = append(out, d)
		}
	}
	return out
}

// Switches are the NVSwitches on the PCI bus (V100, A100 and H100 boards; those
// of NVLink 5 do not appear there).
func Switches(seen host.Facts) []host.PCIDevice {
	var out []host.PCIDevice
	for _, d := range seen.PCI.Value {
		if d.Vendor == vendorNVIDIA && d.Class == "0680" && (d.Device == "1ac2" || d.Device == "1af1" || d.Device == "22a3") {
			out = append(out, d)
		}
	}
	return out
}

// othersNames are cards that are sold for nothing but computing, by vendor and
// device. pci.ids; Intel: intel/compute-runtime devices_base.inl.
func othersNames() map[string]string {
	return map[string]string{
		"1002:738c": "Instinct MI100", "1002:740c": "Instinct MI250X", "1002:740f": "Instinct MI210",
		"1002:74a0": "Instinct MI300A", "1002:74a1": "Instinct MI300X", "1002:74a2": "Instinct MI308X", "1002:74a5": "Instinct MI325X",
		"8086:0bd5": "Data Center GPU Max 1550", "8086:0bd6": "Data Center GPU Max 1550",
	}
}

// accelerated: there is a card of another maker that nobody has by accident.
func accelerated(seen host.Facts) bool {
	for _, d := range seen.PCI.Value {
		if othersNames()[d.Vendor+":"+d.Device] != "" || d.Vendor == vendorHabana {
			return true
		}
	}
	return false
}

// Others are accelerators and display controllers of other makers, the data
// centre ones by name. Graphics built into a server's management chip are none.
func Others(seen host.Facts) []string {
	vendors, names := map[string]string{vendorAMD: "AMD", vendorIntel: "Intel", vendorHabana: "Intel Gaudi"}, othersNames()
	var out []string
	for _, d := range seen.PCI.Value {
		maker := vendors[d.Vendor]
		display := d.Class == "0300" || d.Class == "0302" || d.Class == "0380" || d.Class[:min(2, len(d.Class))] == "12"
		if maker == "" || !display {
			continue
		}
		name := names[d.Vendor+":"+d.Device]
		if name == "" {
			name = "device " + d.Device
		}
		out = append(out, maker+" "+name)
	}
	return out
}

// ForCUDA is what counts of a machine for images: the loaded driver and its
// cards, as the driver lists them, else as the bus does.
func ForCUDA(seen host.Facts) cuda.Node {
	n := cuda.Node{Driver: seen.Driver.Value.LoadedVersion}
	computes := map[string]string{}
	for _, d := range GPUs(seen) {
		computes[d.Address] = cards()[d.Device].Compute
	}
	for _, g := range seen.SMI.Value.GPUs {
		compute := g.Compute
		if compute == "" {
			compute = computes[g.PCI]
		}
		n.GPUs = append(n.GPUs, cuda.GPU{Name: g.Name, Compute: compute})
	}
	if len(n.GPUs) > 0 {
		return n
	}
	for _, d := range GPUs(seen) {
		n.GPUs = append(n.GPUs, cuda.GPU{Name: Model(d), Compute: computes[d.Address]})
	}
	return n
}
