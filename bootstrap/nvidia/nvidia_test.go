package nvidia

import (
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/internal/diag"
)

func gpu(address, device string) host.PCIDevice {
	return host.PCIDevice{Address: address, Vendor: "10de", Device: device, Class: "0302", Driver: "nvidia"}
}

func row(i int, name, pci string) host.GPU {
	return host.GPU{Index: i, UUID: "GPU-" + pci, Name: name, PCI: pci, MemoryMiB: 81559, MIG: "Disabled", MIGPending: "Disabled"}
}

// good is a machine with two H100 and a driver that serves them.
func good() host.Facts {
	return host.Facts{
		System:   host.Known(host.System{Kernel: "6.8.0-45-generic"}),
		PCI:      host.Known([]host.PCIDevice{gpu("0000:18:00.0", "2330"), gpu("0000:2a:00.0", "2330"), {Address: "0000:cb:00.0", Vendor: "1a03", Device: "2000", Class: "0300", Driver: "ast"}}),
		Driver:   host.Known(host.Driver{Modules: map[string]int{"nvidia": 9, "nvidia_uvm": 0}, LoadedVersion: "580.95.05", Flavour: "open", FileVersion: "580.95.05", LibraryVersion: "580.95.05", Nodes: []string{"/dev/nvidia-uvm"}}),
		SMI:      host.Known(host.SMI{DriverVersion: "580.95.05", GPUs: []host.GPU{row(0, "NVIDIA H100 80GB HBM3", "0000:18:00.0"), row(1, "NVIDIA H100 80GB HBM3", "0000:2a:00.0")}}),
		Fabric:   host.Known(host.Fabric{}),
		Packages: host.Known(host.Packages{Manager: "apt", Installed: map[string]string{}}),
		Toolkit:  host.Absent[host.Toolkit](),
	}
}

func want() Want {
	two := 2
	return Want{Machine: "gpu-1", GPUs: &two, GPUModel: "H100", Mode: ModeKeep, Toolkit: Toolkit{
		Version: "1.20.0-1", Repository: "https://nvidia.github.io/libnvidia-container/stable/deb",
		KeyURL: "https://nvidia.github.io/libnvidia-container/gpgkey", KeyFingerprint: "C95B321B61E88C1809C4F759DDCAE044F796ECB0",
	}}
}

func log(lines ...string) host.Fact[[]host.KernelMsg] {
	var out []host.KernelMsg
	for _, l := range lines {
		out = append(out, host.KernelMsg{Text: l})
	}
	return host.Known(out)
}

func TestAGoodMachineHasNoFindings(t *testing.T) {
	if found := Findings(want(), good()); len(found) > 0 {
		t.Errorf("%+v", found)
	}
	if !Good(good()) {
		t.Error("its driver is not good")
	}
}

func only(devices ...host.PCIDevice) func(*host.Facts) {
	return func(f *host.Facts) { f.PCI = host.Known(devices) }
}

// all applies changes in order.
func all(changes ...func(*host.Facts)) func(*host.Facts) {
	return func(f *host.Facts) {
		for _, c := range changes {
			c(f)
		}
	}
}

func driver(version, flavour string) func(*host.Facts) {
	return func(f *host.Facts) { f.Driver.Value.LoadedVersion, f.Driver.Value.Flavour = version, flavour }
}

func smi(code int, message string, gpus ...host.GPU) func(*host.Facts) {
	return func(f *host.Facts) { f.SMI = host.Known(host.SMI{ExitCode: code, Message: message, GPUs: gpus}) }
}

// unloaded has a driver on disk and none in the kernel.
func unloaded(f *host.Facts) {
	f.Driver = host.Known(host.Driver{Modules: map[string]int{}, FileVersion: "580.95.05", LibraryVersion: "580.95.05"})
	f.SMI = host.Known(host.SMI{ExitCode: 9, Message: "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."})
}

type expected struct {
	code     diag.Code
	severity diag.Severity
	evidence string
}

func TestFindings(t *testing.T) {
	blocks, warns, informs := diag.Blocks, diag.Warns, diag.Informs
	v100 := gpu("0000:af:00.0", "1db5")
	pro6000 := gpu("0000:17:00.0", "2bb5")
	noModel := func(w *Want) { w.GPUModel, w.GPUs = "", nil }
	for name, c := range map[string]struct {
		want   func(*Want)
		change func(*host.Facts)
		found  []expected
	}{
		"none":                      {nil, only(), []expected{{CodeNoGPU, blocks, "2 promised"}}},
		"none and not said":         {noModel, only(), nil},
		"fewer":                     {nil, all(only(gpu("0000:18:00.0", "2330")), smi(0, "", row(0, "NVIDIA H100", "0000:18:00.0"))), []expected{{CodeFewer, blocks, "2 promised, 1"}}},
		"more":                      {func(w *Want) { zero := 0; w.GPUs = &zero }, nil, []expected{{CodeMore, warns, "0 promised, 2"}}},
		"MI300X":                    {nil, only(host.PCIDevice{Address: "0000:05:00.0", Vendor: "1002", Device: "74a1", Class: "1200"}), []expected{{CodeOtherVendor, blocks, "AMD Instinct MI300X"}}},
		"graphics of the processor": {noModel, only(host.PCIDevice{Address: "0000:00:02.0", Vendor: "8086", Device: "4680", Class: "0300"}), []expected{{CodeOtherVendor, informs, "Intel device 4680"}}},
		"other model":               {func(w *Want) { w.GPUModel = "h200" }, nil, []expected{{CodeModel, warns, `"NVIDIA H100 80GB HBM3" found`}}},
		"model by PCI id":           {nil, all(unloaded, only(gpu("0000:18:00.0", "20b2"), gpu("0000:2a:00.0", "20b2"))), []expected{{CodeModel, warns, "A100"}, {CodeDriverNotLoaded, blocks, "580.95.05 is on disk"}}},
		"vfio": {nil, func(f *host.Facts) {
			f.PCI.Value[1].Driver = "vfio-pci"
			f.SMI.Value.GPUs = f.SMI.Value.GPUs[:1]
		}, []expected{{CodePassedThrough, blocks, "0000:2a:00.0"}}},
		"old card":               {noModel, all(only(gpu("0000:01:00.0", "102d")), driver("470.256.02", "proprietary"), smi(0, "", row(0, "Tesla K80", "0000:01:00.0"))), []expected{{CodeTooOld, blocks, "Kepler"}}},
		"unknown card":           {noModel, all(only(gpu("0000:01:00.0", "4fff")), smi(0, "", row(0, "NVIDIA X", "0000:01:00.0"))), []expected{{CodeUnknownCard, informs, "10de:4fff"}}},
		"no driver":              {nil, func(f *host.Facts) { f.Driver, f.SMI = host.Known(host.Driver{}), host.Absent[host.SMI]() }, []expected{{CodeDriverMissing, blocks, "2 GPUs"}}},
		"no driver, operator":    {func(w *Want) { w.Mode, w.Driver.Branch = ModeOperator, "580" }, func(f *host.Facts) { f.Driver, f.SMI = host.Known(host.Driver{}), host.Absent[host.SMI]() }, []expected{{CodeDriverImage, blocks, "the operating system is not known"}}},
		"no driver, none wanted": {func(w *Want) { w.Mode = ModeNone }, func(f *host.Facts) { f.Driver, f.SMI = host.Known(host.Driver{}), host.Absent[host.SMI]() }, nil},
		"nouveau": {nil, func(f *host.Facts) {
			f.Driver, f.SMI = host.Known(host.Driver{Modules: map[string]int{"nouveau": 3}, NouveauBlacklisted: true}), host.Absent[host.SMI]()
			f.PCI.Value[0].Driver, f.PCI.Value[1].Driver = "nouveau", "nouveau"
		}, []expected{{CodeNouveau, blocks, "2 GPUs; it is blacklisted"}, {CodeDriverMissing, blocks, ""}}},
		"nouveau loaded and unused": {nil, func(f *host.Facts) { f.Driver.Value.Modules["nouveau"] = 0 }, nil},
		"not loaded":                {nil, unloaded, []expected{{CodeDriverNotLoaded, blocks, "580.95.05 is on disk"}}},
		"no module for this kernel": {nil, all(unloaded, func(f *host.Facts) { f.Driver.Value.FileVersion = "" }), []expected{{CodeDriverNotLoaded, blocks, "no module for kernel 6.8.0-45-generic"}}},
		"secure boot": {nil, all(unloaded, func(f *host.Facts) {
			f.SecureBoot = host.Known(true)
			f.KernelLog = log("NVRM: x", "nvidia: Loading of unsigned module is rejected")
		}), []expected{{CodeSecureBoot, blocks, ""}}},
		"library missing": {nil, func(f *host.Facts) { f.SMI = host.Absent[host.SMI]() }, []expected{{CodeDriverLibrary, blocks, "580.95.05"}}},
		"hangs":           {nil, func(f *host.Facts) { f.SMI = host.Unknown[host.SMI]("timeout") }, []expected{{CodeSMIHangs, blocks, "timeout"}}},
		// NVIDIA pairs of tinygrad/open-gpu-kernel-modules#47: 570.124 is a prefix of the module's version.
		"mismatch": {nil, all(driver("570.124.06", "open"), smi(18, "Failed to initialize NVML: Driver/library version mismatch; NVML library version: 570.124"), func(f *host.Facts) {
			f.Driver.Value.LibraryVersion, f.Driver.Value.FileVersion = "570.124.04", "570.124.04"
		}),
			[]expected{{CodeDriverMismatch, blocks, "module 570.124.06 is loaded, the library is 570.124.04"}}},
		"Blackwell with the proprietary module": {noModel, all(only(gpu("0000:02:00.0", "2c58")), driver("580.105.08", "proprietary"), smi(6, "No devices were found")),
			[]expected{{CodeNeedsOpen, blocks, "580.105.08 proprietary"}, {CodeCountDiffers, blocks, "1 on the PCI bus, 0 in nvidia-smi (No devices were found)"}}},
		"V100 with the open module": {noModel, all(only(v100), driver("580.95.05", "open"), smi(6, "No devices were found")),
			[]expected{{CodeNeedsProprietary, blocks, "V100"}, {CodeCountDiffers, blocks, ""}}},
		"V100 with branch 595": {noModel, all(only(v100), driver("595.91.07", "proprietary"), smi(6, "No devices were found")),
			[]expected{{CodeDriverTooNew, blocks, "last branch 580"}, {CodeCountDiffers, blocks, ""}}},
		"V100 and B200": {noModel, all(only(v100, gpu("0000:1b:00.0", "2901")), driver("580.95.05", "open"), smi(0, "", row(0, "NVIDIA B200", "0000:1b:00.0"))),
			[]expected{{CodeNeedsProprietary, blocks, "V100"}, {CodeCountDiffers, blocks, "2 on the PCI bus, 1"}}},
		"RTX PRO 6000 with 570": {noModel, all(only(pro6000), driver("570.133.20", "open"), smi(0, "", row(0, "NVIDIA RTX PRO 6000 Blackwell Server Edition", "0000:17:00.0"))),
			[]expected{{CodeDriverTooOld, blocks, "needs 575.57.08"}}},
		"GH200 with the proprietary module": {noModel, all(only(gpu("0009:01:00.0", "2342")), driver("570.133.20", "proprietary"), smi(0, "", row(0, "NVIDIA GH200 480GB", "0009:01:00.0"))),
			[]expected{{CodeNeedsOpen, blocks, "GH200"}}},
		// Kernel logs of NVIDIA/open-gpu-kernel-modules#862, #322 and NVIDIA/nvtrust#55.
		"log: needs open": {noModel, all(only(gpu("0000:02:00.0", "4fff")), smi(6, "No devices were found"), func(f *host.Facts) {
			f.KernelLog = log("NVRM: The NVIDIA GPU 0000:02:00.0 (PCI ID: 10de:4fff)", "NVRM: installed in this system requires use of the NVIDIA open kernel modules.", "NVRM: GPU 0000:02:00.0: RmInitAdapter failed! (0x22:0x56:884)")
		}), []expected{{CodeUnknownCard, informs, ""}, {CodeNeedsOpen, blocks, "kernel log"}, {CodeCountDiffers, blocks, ""}}},
		"log: needs proprietary": {noModel, all(only(gpu("0000:af:00.0", "4fff")), smi(6, "No devices were found"), func(f *host.Facts) {
			f.KernelLog = log("NVRM: installed in this system is not supported by open", "NVRM: nvidia.ko because it does not include the required GPU", "NVRM: System Processor (GSP).")
		}), []expected{{CodeUnknownCard, informs, ""}, {CodeNeedsProprietary, blocks, "kernel log"}, {CodeCountDiffers, blocks, ""}}},
		"log: release too old": {nil, all(driver("550.90.07", "open"), smi(6, "No devices were found"), func(f *host.Facts) {
			f.KernelLog = log("NVRM: installed in this system is not supported by the", "NVRM: NVIDIA 550.90.07 driver release.")
		}), []expected{{CodeDriverTooOld, blocks, "550.90.07"}, {CodeCountDiffers, blocks, ""}}},
		"log: only RmInitAdapter": {nil, all(smi(6, "No devices were found"), func(f *host.Facts) {
			f.KernelLog = log("NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x22:0x56:884)")
		}), []expected{{CodeDriverInit, blocks, "RmInitAdapter"}, {CodeCountDiffers, blocks, ""}}},
		"lost": {nil, func(f *host.Facts) {
			f.SMI.Value.GPUs, f.SMI.Value.Lost, f.SMI.Value.ExitCode = f.SMI.Value.GPUs[:1], []string{"0000:2a:00.0"}, 15
		}, []expected{{CodeLost, blocks, "0000:2a:00.0"}, {CodeCountDiffers, blocks, ""}}},
		"reset": {nil, func(f *host.Facts) { f.SMI.Value.GPUs[1].Trouble = "GPU requires reset" }, []expected{{CodeNeedsReset, blocks, "GPU 1 at 0000:2a:00.0"}}},
		"MIG":   {nil, func(f *host.Facts) { f.SMI.Value.GPUs[0].MIGPending = "Enabled" }, []expected{{CodeMIGPending, warns, "GPU 0: Disabled, pending Enabled"}}},
		"busy":  {nil, func(f *host.Facts) { f.SMI.Value.Busy = []string{"GPU-a"} }, []expected{{CodeBusy, warns, "1 GPUs"}}},
		"pods": {nil, func(f *host.Facts) {
			f.SMI.Value.Busy = []string{"GPU-a"}
			f.K3s = host.Known(host.K3s{Units: map[string]host.Unit{"k3s-agent": {Active: "active"}}})
		}, nil},
		"no uvm":  {nil, func(f *host.Facts) { delete(f.Driver.Value.Modules, "nvidia_uvm"); f.Driver.Value.Nodes = nil }, []expected{{CodeUVM, warns, ""}}},
		"runfile": {nil, func(f *host.Facts) { f.Driver.Value.Runfile = true }, []expected{{CodeDriverRunfile, informs, ""}}},
		// Hosts of NVIDIA/gpu-operator#544 and #1043, siderolabs/extensions#717.
		"host1: fabric manager of another version": {nil, all(driver("550.120", "open"), func(f *host.Facts) {
			f.Fabric = host.Known(host.Fabric{Switches: 4, Manager: "failed", ManagerMessage: "fabric manager NVIDIA GPU driver interface version 550.127.05 don't match with driver version 550.120."})
		}), []expected{{CodeFabricVersion, blocks, "550.127.05"}}},
		"host2: all well": {nil, func(f *host.Facts) {
			f.Fabric = host.Known(host.Fabric{Switches: 4, Manager: "active"})
			f.SMI.Value.GPUs[0].Fabric = "Completed"
		}, nil},
		"host3: no NVSwitch": {nil, func(f *host.Facts) { f.Fabric = host.Known(host.Fabric{Manager: "failed"}) }, nil},
		"host4: one not ready": {nil, func(f *host.Facts) {
			f.Fabric = host.Known(host.Fabric{Switches: 6, Manager: "active"})
			f.SMI.Value.GPUs[0].Fabric = "In Progress"
		}, []expected{{CodeFabricNotReady, blocks, "1 of 2"}}},
		"host5: B200 without nvlsm": {noModel, all(only(gpu("0000:1b:00.0", "2901")), driver("580.65.06", "open"), smi(0, "", host.GPU{Name: "NVIDIA B200", Fabric: "In Progress"})), []expected{{CodeFabricNotReady, blocks, "0 NVSwitches"}}},
		"fabric manager absent": {nil, func(f *host.Facts) {
			f.PCI.Value = append(f.PCI.Value, host.PCIDevice{Vendor: "10de", Device: "22a3", Class: "0680"})
		}, []expected{{CodeFabricManager, blocks, "1 NVSwitches, nvidia-fabricmanager is not installed"}}},
		"fabric up without a unit": {nil, func(f *host.Facts) {
			f.Fabric = host.Known(host.Fabric{Switches: 4})
			f.SMI.Value.GPUs[0].Fabric, f.SMI.Value.GPUs[1].Fabric = "Completed", "Completed"
		}, nil},
		"fabric manager package": {nil, func(f *host.Facts) {
			f.Fabric = host.Known(host.Fabric{Switches: 4, Manager: "active"})
			f.Packages.Value.Installed["nvidia-fabricmanager-580"] = "580.82.07-1"
		}, []expected{{CodeFabricVersion, blocks, "580.82.07-1, driver 580.95.05"}}},
		"operator's toolkit": {nil, func(f *host.Facts) {
			f.Toolkit = host.Known(host.Toolkit{OperatorCopy: true, Runtime: "/usr/local/nvidia/toolkit/nvidia-container-runtime"})
		}, []expected{{CodeOperatorCopy, warns, "/usr/local/nvidia"}}},
		"newer toolkit": {nil, func(f *host.Facts) { f.Toolkit = host.Known(host.Toolkit{Version: "1.21.0"}) }, []expected{{CodeToolkitNewer, informs, "1.21.0 is installed, the set has 1.20.0"}}},
		"two sources":   {nil, func(f *host.Facts) { f.Packages.Value.NVIDIASources = []string{"/a.list", "/b.list"} }, []expected{{CodeAptSourceConflict, warns, "/a.list, /b.list"}}},
	} {
		t.Run(name, func(t *testing.T) {
			w, f := want(), good()
			if c.want != nil {
				c.want(&w)
			}
			if c.change != nil {
				c.change(&f)
			}
			found := Findings(w, f)
			if len(found) != len(c.found) {
				t.Fatalf("found %+v, want %+v", found, c.found)
			}
			for i, e := range c.found {
				if found[i].Code != e.code || found[i].Severity != e.severity || !strings.Contains(found[i].Evidence, e.evidence) {
					t.Errorf("found %+v, want %+v", found[i], e)
				}
			}
		})
	}
}

func TestWithoutTheBusNothingIsSaid(t *testing.T) {
	f := good()
	f.PCI = host.Unknown[[]host.PCIDevice]("timeout")
	if found := Findings(want(), f); found != nil {
		t.Errorf("%+v", found)
	}
	if Good(f) {
		t.Error("a driver is good without GPUs")
	}
}

func TestEveryCodeIsInTheCatalogue(t *testing.T) {
	for _, code := range Codes() {
		if p, ok := diag.Lookup(code); !ok || len(p.Fix) == 0 || p.Cause == "" {
			t.Errorf("%s is not in the catalogue, or without cause or fix", code)
		}
	}
}
