package nvidia

import (
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/internal/diag"
)

// running is a machine on which k3s runs with the toolkit.
func running(f *host.Facts) {
	f.Toolkit = host.Known(host.Toolkit{Version: "1.20.0", Runtime: "/usr/bin/nvidia-container-runtime", Binaries: map[string]string{
		"nvidia-ctk": "/usr/bin/nvidia-ctk", "nvidia-container-runtime": "/usr/bin/nvidia-container-runtime", "nvidia-cdi-hook": "/usr/bin/nvidia-cdi-hook",
	}})
	f.K3s = host.Known(host.K3s{Units: map[string]host.Unit{"k3s-agent": {Active: "active"}}, Containerd: host.ContainerdConfig{
		Schema: 3, Runtimes: map[string]string{"nvidia": "/usr/bin/nvidia-container-runtime"},
	}})
}

func named(name string, memory int64) func(*host.Facts) {
	return func(f *host.Facts) { f.SMI.Value.GPUs[0].Name, f.SMI.Value.GPUs[0].MemoryMiB = name, memory }
}

func eight(f *host.Facts) {
	f.PCI, f.SMI.Value.GPUs = host.Known([]host.PCIDevice{}), nil
	for i, a := range []string{"18", "2a", "3a", "5d", "9a", "ab", "ba", "db"} {
		g := row(i, "NVIDIA H100 80GB HBM3", "0000:"+a+":00.0")
		g.Persistence = "Disabled"
		f.PCI.Value, f.SMI.Value.GPUs = append(f.PCI.Value, gpu("0000:"+a+":00.0", "2330")), append(f.SMI.Value.GPUs, g)
	}
}

func TestConditions(t *testing.T) {
	blocks, warns, informs := diag.Blocks, diag.Warns, diag.Informs
	for name, c := range map[string]struct {
		change func(*host.Facts)
		found  []expected
	}{
		"k3s with the toolkit": {running, nil},
		"fewer device files": {func(f *host.Facts) {
			f.Driver.Value.Nodes = append(f.Driver.Value.Nodes, "/dev/nvidia0", "/dev/nvidiactl")
		}, []expected{{CodeDeviceMajor, warns, "1 of 2"}}},
		"all device files": {func(f *host.Facts) {
			f.Driver.Value.Nodes = append(f.Driver.Value.Nodes, "/dev/nvidia0", "/dev/nvidia1")
		}, nil},
		"driver before CUDA 13": {driver("550.144.03", "open"), []expected{{CodeCUDAMajor, informs, "images of CUDA 13"}}},
		"driver before CUDA 12": {driver("470.256.02", "proprietary"), []expected{{CodeCUDAMajor, informs, "CUDA 12, 13"}}},
		"reboot will not help":  {func(f *host.Facts) { f.Driver.Value.LibraryVersion = "580.82.07" }, []expected{{CodePackagesMixed, warns, "580.95.05, the library 580.82.07"}}},
		"infoROM": {func(f *host.Facts) {
			f.SMI.Value.ExitCode, f.SMI.Value.Message = 14, "WARNING: infoROM is corrupted at gpu 0000:2A:00.0"
		}, []expected{{CodeInfoROM, blocks, "0000:2A:00.0"}}},
		"two models":                {named("NVIDIA H200", 143771), []expected{{CodeModel, warns, ""}, {CodeModelsMixed, informs, "1 x NVIDIA H100 80GB HBM3, 1 x NVIDIA H200"}}},
		"HMM":                       {func(f *host.Facts) { f.KernelLog = log("nvidia-uvm: request_free_mem_region() err -34") }, []expected{{CodeHMM, blocks, "err -34"}}},
		"eight without persistence": {all(eight, func(f *host.Facts) { f.Fabric.Value.Persistenced = "inactive" }), []expected{{CodeMore, warns, ""}, {CodePersistence, informs, "8 GPUs"}}},
		"one, and the daemon failed": {func(f *host.Facts) {
			f.SMI.Value.GPUs[0].Persistence, f.Fabric.Value.Persistenced = "Disabled", "failed"
		}, []expected{{CodePersistence, informs, "has failed"}}},
		"one, and no daemon":    {func(f *host.Facts) { f.SMI.Value.GPUs[0].Persistence = "Disabled" }, nil},
		"eight with the daemon": {all(eight, func(f *host.Facts) { f.Fabric.Value.Persistenced = "active" }), []expected{{CodeMore, warns, ""}}},
		"MIG on one of two, 570.148": {all(driver("570.148.08", "open"), func(f *host.Facts) { f.SMI.Value.GPUs[0].MIG, f.SMI.Value.GPUs[0].MIGPending = "Enabled", "Enabled" }),
			[]expected{{CodeMIGMixedDriver, warns, "1 GPUs with MIG, 1 without"}, {CodeCUDAMajor, informs, ""}}},
		"MIG on one of two, 580": {func(f *host.Facts) { f.SMI.Value.GPUs[0].MIG, f.SMI.Value.GPUs[0].MIGPending = "Enabled", "Enabled" }, nil},
		"not held": {func(f *host.Facts) {
			f.Packages.Value.Installed["nvidia-driver-580-server-open"], f.Packages.Value.UnattendedUpgrades = "580.95.05-0ubuntu1", true
		}, []expected{{CodeNotHeld, informs, "nvidia-driver-580-server-open"}}},
		"held by gpuctl's file": {func(f *host.Facts) {
			f.Packages.Value.Installed["nvidia-driver-580-server-open"], f.Packages.Value.UnattendedUpgrades = "580.95.05-0ubuntu1", true
			f.Files = host.Known(map[string]host.File{host.PathUnattended: {}})
		}, nil},
		"toolkit without its hook": {all(running, func(f *host.Facts) { delete(f.Toolkit.Value.Binaries, "nvidia-cdi-hook") }), []expected{{CodeToolkitPart, informs, "nvidia-cdi-hook"}}},
		"k3s before the toolkit":   {all(running, func(f *host.Facts) { f.K3s.Value.Containerd.Runtimes = nil }), []expected{{CodeRuntimeUnknown, informs, "k3s started without it"}}},
		"toolkit removed under k3s": {all(running, func(f *host.Facts) { f.Toolkit = host.Absent[host.Toolkit]() }),
			[]expected{{CodeRuntimeGone, warns, "/usr/bin/nvidia-container-runtime"}}},
		"default runtime without its binary": {all(running, func(f *host.Facts) { f.Toolkit, f.K3s.Value.Containerd.Default = host.Absent[host.Toolkit](), "nvidia" }),
			[]expected{{CodeDefaultRuntime, warns, "will not start again"}}},
		"nobody knows of the toolkit": {all(running, func(f *host.Facts) { f.Toolkit = host.Unknown[host.Toolkit]("timeout") }), nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := good()
			c.change(&f)
			expect(t, Findings(want(), f), c.found)
		})
	}
}

func TestConditionsOfOtherCards(t *testing.T) {
	w := want()
	w.GPUModel, w.GPUs = "", nil
	for name, c := range map[string]struct {
		change func(*host.Facts)
		found  []expected
	}{
		"GB10": {all(only(gpu("000f:01:00.0", "2e12")), smi(0, "", host.GPU{Name: "NVIDIA GB10", PCI: "000f:01:00.0"})), []expected{{CodeUnifiedMemory, diag.Informs, "NVIDIA GB10"}}},
		// HSF/prmon#318
		"a part of an A40": {all(only(gpu("0000:02:00.0", "2235")), smi(0, "", row(0, "NVIDIA A40-24C", "0000:02:00.0"))), []expected{{CodeVGPU, diag.Warns, "NVIDIA A40-24C"}}},
		"a whole A40":      {all(only(gpu("0000:02:00.0", "2235")), smi(0, "", row(0, "NVIDIA A40", "0000:02:00.0"))), nil},
		"DKMS without headers": {all(unloaded, func(f *host.Facts) {
			f.Driver.Value.FileVersion = ""
			f.Packages.Value.Installed["nvidia-dkms-580-server-open"] = "580.95.05-0ubuntu1"
		}), []expected{{CodeDriverNotLoaded, diag.Blocks, ""}, {CodeHeadersMissing, diag.Warns, "kernel 6.8.0-45-generic"}}},
	} {
		t.Run(name, func(t *testing.T) {
			f := good()
			c.change(&f)
			expect(t, Findings(w, f), c.found)
		})
	}
}

func expect(t *testing.T, found []diag.Finding, right []expected) {
	t.Helper()
	if len(found) != len(right) {
		t.Fatalf("found %+v, want %+v", found, right)
	}
	for i, e := range right {
		if found[i].Code != e.code || found[i].Severity != e.severity || !strings.Contains(found[i].Evidence, e.evidence) {
			t.Errorf("found %+v, want %+v", found[i], e)
		}
	}
}
