package nvidia

import (
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/internal/diag"
)

// Case 037, 550.txt: MIG is on and nothing was cut; the node will offer no GPU.
// Where the slices were not listed nothing is said.
func TestMIGWithoutSlicesCase037(t *testing.T) {
	f := good()
	for i := range f.SMI.Value.GPUs {
		f.SMI.Value.GPUs[i].MIG, f.SMI.Value.GPUs[i].MIGPending = "Enabled", "Enabled"
		f.SMI.Value.GPUs[i].Slices = []host.Slice{{UUID: "MIG-1", Profile: "3g.40gb"}}
	}
	f.SMI.Value.SlicesListed = true
	expect(t, Findings(Want{Machine: "gpu-1"}, f), nil)
	f.SMI.Value.GPUs[0].Slices = nil
	expect(t, Findings(Want{Machine: "gpu-1"}, f), []expected{{CodeMIGEmpty, diag.Warns, "GPU 0"}})
	f.SMI.Value.SlicesListed = false
	expect(t, Findings(Want{Machine: "gpu-1"}, f), nil)
}

// Case 039, v6.xml: a card that no supported driver knows.
func TestACardTooOldCase039(t *testing.T) {
	f := good()
	f.PCI = host.Known([]host.PCIDevice{{Address: "0000:01:00.0", Vendor: "10de", Device: "0611", Class: "0300", Driver: "nvidia"}})
	f.SMI.Value.DriverVersion = "340.102"
	f.SMI.Value.GPUs = []host.GPU{{Index: 0, UUID: "GPU-0", Name: "GeForce 8800 GT", PCI: "0000:01:00.0", MemoryMiB: 511}}
	f.Driver.Value.LoadedVersion, f.Driver.Value.FileVersion, f.Driver.Value.LibraryVersion, f.Driver.Value.Flavour = "340.102", "340.102", "340.102", "proprietary"
	for _, found := range Findings(Want{Machine: "gpu-1"}, f) {
		if found.Code == CodeTooOld && found.Severity == diag.Blocks {
			return
		}
	}
	t.Errorf("%+v", Findings(Want{Machine: "gpu-1"}, f))
}
