package nvidia

import (
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/internal/diag"
)

// What lspci -nn of real machines shows: recordings of an HGX H100 board, a
// B300 of NVIDIA/go-nvlib#110, a desktop with an RTX 5090.
func TestWhatOnTheBusIsAGPU(t *testing.T) {
	device := func(address, class, vendor, id, driver string) host.PCIDevice {
		return host.PCIDevice{Address: address, Class: class, Vendor: vendor, Device: id, Driver: driver}
	}
	hgx := []host.PCIDevice{}
	for _, a := range []string{"18", "2a", "3a", "5d", "9a", "ab", "ba", "db"} {
		hgx = append(hgx, device("0000:"+a+":00.0", "0302", "10de", "2330", "nvidia"))
	}
	for _, a := range []string{"05", "06", "07", "08"} {
		hgx = append(hgx, device("0000:"+a+":00.0", "0680", "10de", "22a3", "nvidia-nvswitch"))
	}
	hgx = append(hgx, device("0000:cb:00.0", "0300", "1a03", "2000", "ast"), device("0000:19:00.0", "0207", "15b3", "1021", "mlx5_core"))
	for name, c := range map[string]struct {
		bus            []host.PCIDevice
		gpus, switches int
	}{
		"HGX H100": {hgx, 8, 4},
		"B300":     {[]host.PCIDevice{device("0000:1b:00.0", "0302", "10de", "3182", ""), device("0000:43:00.0", "0302", "10de", "3182", "")}, 2, 0},
		"desktop":  {[]host.PCIDevice{device("0000:01:00.0", "0300", "10de", "2b85", ""), device("0000:01:00.1", "0403", "10de", "22e8", ""), device("0000:02:00.2", "0c03", "10de", "1ad8", "")}, 1, 0},
		"V100":     {[]host.PCIDevice{device("0000:af:00.0", "0302", "10de", "1db6", "")}, 1, 0},
	} {
		seen := host.Facts{PCI: host.Known(c.bus)}
		if g, s := len(GPUs(seen)), len(Switches(seen)); g != c.gpus || s != c.switches {
			t.Errorf("%s: %d GPUs, %d switches, want %d and %d", name, g, s, c.gpus, c.switches)
		}
	}
	given := good()
	given.PCI = host.Known([]host.PCIDevice{device("0000:9a:00.0", "0302", "10de", "2335", "vfio-pci")})
	given.SMI.Value.GPUs = nil
	if found := Findings(Want{Machine: "gpu-1"}, given); len(found) == 0 || found[0].Code != CodePassedThrough {
		t.Errorf("a GPU of a guest: %+v", found)
	}
}

// nouveau of NVIDIA/gpu-operator#974 and mattshma/bigdata#133: three GPUs.
func TestNouveauHoldsThreeGPUs(t *testing.T) {
	f := good()
	f.Driver, f.SMI = host.Known(host.Driver{Modules: map[string]int{"nouveau": 3}}), host.Absent[host.SMI]()
	f.PCI = host.Known([]host.PCIDevice{gpu("0000:04:00.0", "1db4"), gpu("0000:05:00.0", "1db4"), gpu("0000:84:00.0", "1db4")})
	for i := range f.PCI.Value {
		f.PCI.Value[i].Driver = "nouveau"
	}
	found := Findings(Want{Machine: "gpu-1", Mode: ModeKeep}, f)
	if len(found) == 0 || found[0].Code != CodeNouveau || found[0].Evidence != "nouveau drives 3 GPUs" {
		t.Errorf("%+v", found)
	}
}

// The four rows of NVIDIA/k8s-device-plugin#343 and NVIDIA/gpu-operator#1606:
// pending on, on, pending off, no MIG.
func TestMIGModesThatWaitForAReset(t *testing.T) {
	f := good()
	f.PCI, f.SMI.Value.GPUs = host.Known([]host.PCIDevice{}), nil
	for i, mode := range [][2]string{{"Disabled", "Enabled"}, {"Enabled", "Enabled"}, {"Enabled", "Disabled"}, {"", ""}} {
		address := "0000:0" + string(rune('1'+i)) + ":00.0"
		g := row(i, "NVIDIA A100-SXM4-80GB", address)
		id := "20b2"
		if i == 3 {
			g.Name, id = "NVIDIA A10", "2236"
		}
		g.MIG, g.MIGPending = mode[0], mode[1]
		f.PCI.Value, f.SMI.Value.GPUs = append(f.PCI.Value, gpu(address, id)), append(f.SMI.Value.GPUs, g)
	}
	expect(t, Findings(Want{Machine: "gpu-1"}, f), []expected{
		{CodeMIGPending, diag.Warns, "GPU 0: Disabled, pending Enabled; GPU 2: Enabled, pending Disabled"},
		{CodeModelsMixed, diag.Informs, "1 x NVIDIA A10, 3 x NVIDIA A100-SXM4-80GB"},
	})
}

// One of four GPUs of NVIDIA/open-gpu-kernel-modules#387 is lost: the driver
// lists indexes 0, 2 and 3.
func TestOneOfFourIsLost(t *testing.T) {
	f := good()
	f.PCI, f.SMI.Value.GPUs = host.Known([]host.PCIDevice{}), nil
	for i, address := range []string{"0000:16:00.0", "0000:35:00.0", "0000:5a:00.0", "0000:97:00.0"} {
		f.PCI.Value = append(f.PCI.Value, gpu(address, "2bb5"))
		if i != 1 {
			f.SMI.Value.GPUs = append(f.SMI.Value.GPUs, row(i, "NVIDIA RTX PRO 6000 Blackwell Server Edition", address))
		}
	}
	f.Driver.Value.LoadedVersion, f.Driver.Value.FileVersion, f.Driver.Value.LibraryVersion = "610.57.04", "610.57.04", "610.57.04"
	f.SMI.Value.Lost, f.SMI.Value.ExitCode = []string{"0000:35:00.0"}, 15
	found := diag.Reduce(Findings(Want{Machine: "gpu-1"}, f))
	expect(t, found, []expected{{CodeLost, diag.Blocks, "0000:35:00.0"}})
}
