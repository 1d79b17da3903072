package nvidia

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/internal/diag"
)

// providing is a wish for the default set's driver.
func providing() Want {
	w := want()
	w.GPUs, w.GPUModel, w.Mode = nil, "", ModeAuto
	w.Driver = Driver{
		Branch: "580", KeyFingerprint: "EB693B3035CD5710E231E123A4B469963BF863CC",
		Keys: map[string]string{"debian13": "02182E60104FCDC26EAE1B8597A5D4CB8793F200"},
	}
	return w
}

// bare is a synthetic machine without a driver.
func bare(id, version string, devices ...string) host.Facts {
	f := good()
	f.OS = host.Known(host.OS{ID: id, VersionID: version, BaseID: id, BaseVersion: version, Family: "debian", PrettyName: id + " " + version})
	f.System = host.Known(host.System{Kernel: "6.8.0-85-generic", Arch: "x86_64"})
	f.SecureBoot = host.Absent[bool]()
	var pci []host.PCIDevice
	for i, d := range devices {
		g := gpu(fmt.Sprintf("0000:%02x:00.0", 0x18+i), d)
		g.Driver = ""
		pci = append(pci, g)
	}
	f.PCI = host.Known(pci)
	f.Driver, f.SMI, f.Fabric = host.Known(host.Driver{}), host.Absent[host.SMI](), host.Known(host.Fabric{})
	return f
}

// models are the cards of the reference table, by PCI id; ids of those that
// pci.ids knew late are in cards().
func models() []string {
	return []string{
		"1db1", "1db6", "1eb8", "20b2", "20b5", "20f3", "20b7", "2236", "25b6", "2235", "2230", "2231", "24b0", "2204",
		"27b8", "26b5", "26b9", "26b1", "2684", "2330", "2331", "2335", "2329", "2321", "2342", "2901", "2941", "3182", "31c2",
		"2bb5", "2b85",
		// Variants of the same, and cards of the table that pci.ids gives no name here: RTX 5080, GB10.
		"20b0", "20b1", "2237", "2322", "2324", "233b", "2348", "2bb1", "2c02", "2e12",
	}
}

// TestDriverOfEveryCard pins flavour and branch over synthetic machines of every
// card, with the source of the choice.
func TestDriverOfEveryCard(t *testing.T) {
	var out bytes.Buffer
	for _, device := range models() {
		c, no := Choose(providing(), bare("ubuntu", "24.04", device))
		if no != nil {
			t.Fatalf("%s: %v", device, no)
		}
		fmt.Fprintf(&out, "%s %s: %s %d (%s)\n", device, Model(host.PCIDevice{Vendor: "10de", Device: device}), c.Flavour, c.Branch, c.Reason)
	}
	golden(t, "driver-choice.golden", out.Bytes())
}

func TestNoDriverFits(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*Want)
		devices []string
		code    diag.Code
	}{
		"V100 and B200":           {nil, []string{"1db6", "2901"}, CodeMixedCards},
		"V100 with the user's":    {func(w *Want) { w.Driver.Branch, w.Driver.Explicit = "595", true }, []string{"1db6"}, CodeDriverTooNew},
		"B200 with 535":           {func(w *Want) { w.Driver.Branch = "535" }, []string{"2901"}, CodeDriverTooOld},
		"Blackwell, proprietary":  {func(w *Want) { w.Driver.Modules = FlavourProprietary }, []string{"2b85"}, CodeNeedsOpen},
		"V100, open":              {func(w *Want) { w.Driver.Modules = FlavourOpen }, []string{"1db6"}, CodeNeedsProprietary},
		"a word for a branch":     {func(w *Want) { w.Driver.Branch = "latest" }, []string{"2330"}, CodeNoPackage},
		"V100 with the set's 595": {func(w *Want) { w.Driver.Branch = "595" }, []string{"1db6"}, ""},
		"V100 beside T4":          {nil, []string{"1eb8", "1db6"}, ""},
	} {
		w := providing()
		if c.change != nil {
			c.change(&w)
		}
		f := bare("ubuntu", "24.04", c.devices...)
		choice, no := Choose(w, f)
		if (no == nil) != (c.code == "") || (no != nil && no.Code != c.code) {
			t.Errorf("%s: %+v, %v; want %q", name, choice, no, c.code)
		}
		if no == nil && (choice.Branch != 580 || choice.Flavour != FlavourProprietary) {
			t.Errorf("%s: %+v", name, choice)
		}
		if found := Findings(w, f); no != nil && (!diag.AnyBlocks(found) || len(planDriver(w, f, nil)) > 0) {
			t.Errorf("%s: planned all the same: %+v", name, found)
		}
	}
	rpm := bare("ubuntu", "24.04", "2330")
	rpm.Packages.Value.Manager = "dnf"
	if found := Findings(providing(), rpm); !diag.AnyBlocks(found) || found[len(found)-1].Code != CodeNoPackage {
		t.Errorf("without apt: %+v", found)
	}
	// LMDE 6 is a Debian 12 (case: the same id, two families).
	lmde := bare("debian", "12", "2330")
	lmde.OS.Value.ID, lmde.OS.Value.VersionID = "linuxmint", "6"
	if p, no := PackagesFor(providing(), lmde, Choice{FlavourOpen, 580, ""}); no != nil || !strings.Contains(p.Source.Repository, "debian12") {
		t.Errorf("LMDE 6: %+v, %v", p, no)
	}
}

// TestCourse is which actions and which blocking findings a state of the driver leads to.
func TestCourse(t *testing.T) {
	nouveau := func(blacklisted bool) func(*host.Facts) {
		return func(f *host.Facts) {
			f.Driver.Value.Modules, f.Driver.Value.NouveauBlacklisted = map[string]int{"nouveau": 1}, blacklisted
			for i := range f.PCI.Value {
				f.PCI.Value[i].Driver = "nouveau"
			}
		}
	}
	onDisk := func(version, flavour string) func(*host.Facts) {
		return func(f *host.Facts) {
			f.Driver.Value.FileVersion, f.Driver.Value.LibraryVersion, f.Driver.Value.FileFlavour = version, version, flavour
			f.SMI = host.Known(host.SMI{ExitCode: 9, Message: "NVIDIA-SMI has failed because it couldn't communicate"})
			f.Packages.Value.Installed["nvidia-open"] = version + "-1"
		}
	}
	loaded := func(version, flavour string) func(*host.Facts) {
		return func(f *host.Facts) {
			f.Driver.Value.LoadedVersion, f.Driver.Value.Flavour = version, flavour
			f.Driver.Value.Modules = map[string]int{"nvidia": 1, "nvidia_uvm": 0}
			f.SMI = host.Known(host.SMI{DriverVersion: version, GPUs: []host.GPU{row(0, "NVIDIA H100 80GB HBM3", "0000:18:00.0")}})
		}
	}
	switches := func(f *host.Facts) {
		f.PCI.Value = append(f.PCI.Value, host.PCIDevice{Address: "0000:05:00.0", Vendor: "10de", Device: "22a3", Class: "0680"})
	}
	never := func(w *Want) { w.Driver.NoReboot = true }
	for name, c := range map[string]struct {
		want    func(*Want)
		device  string
		change  func(*host.Facts)
		actions string // IDs and reasons
		blocks  diag.Code
	}{
		"nothing": {nil, "2330", func(*host.Facts) {}, "driver(there is no driver), reboot(a new driver may not load at once)", ""},
		"nothing, NVSwitch": {nil, "2330", switches, "driver(there is no driver), reboot(a new driver may not load at once), " +
			"fabric-manager(1 NVSwitches, and the driver changes)", ""},
		"nouveau":                   {nil, "2330", nouveau(false), "driver(there is no driver), reboot(nouveau holds 1 GPUs)", ""},
		"nouveau, installed":        {nil, "2330", all(onDisk("580.95.05", "open"), nouveau(true)), "reboot(nouveau holds 1 GPUs)", ""},
		"nouveau, only installed":   {nil, "2330", all(onDisk("580.95.05", "open"), nouveau(false)), "driver(nouveau holds the GPUs and is not blacklisted), reboot(nouveau holds 1 GPUs)", ""},
		"nouveau, no reboot":        {never, "2330", nouveau(false), "", CodeRebootNeeded},
		"nothing, no reboot":        {never, "2330", func(*host.Facts) {}, "driver(there is no driver), reboot(a new driver may not load at once)", ""},
		"kept out":                  {func(w *Want) { w.Mode = ModeKeep }, "2330", func(*host.Facts) {}, "", CodeDriverMissing},
		"the operator's":            {func(w *Want) { w.Mode = ModeOperator }, "2330", func(*host.Facts) {}, "", CodeDriverImage},
		"not loaded":                {nil, "2330", onDisk("580.95.05", "open"), "reboot(driver 580.95.05 is installed and not loaded)", ""},
		"another version is loaded": {nil, "2330", all(onDisk("580.105.08", "open"), loaded("580.95.05", "open")), "reboot(module 580.95.05 is loaded, 580.105.08 is installed)", ""},
		"good":                      {nil, "2330", all(onDisk("580.95.05", "open"), loaded("580.95.05", "open")), "", ""},
		"good, of another branch":   {nil, "2330", all(onDisk("570.124.06", "open"), loaded("570.124.06", "open")), "", ""},
		"another branch is wanted": {func(w *Want) { w.Driver.Explicit = true }, "2330", all(onDisk("570.124.06", "open"), loaded("570.124.06", "open")),
			"driver(the driver is 570.124.06, wanted is branch 580), reboot(module 570.124.06 is loaded)", ""},
		"V100 with the open one": {nil, "1db6", all(onDisk("580.95.05", "open"), loaded("580.95.05", "open")),
			"driver(the modules are open: Tesla V100 PCIe 32GB runs with these alone), reboot(module 580.95.05 is loaded)", ""},
		"V100, changed, not rebooted": {nil, "1db6", all(onDisk("580.95.05", "proprietary"), loaded("580.95.05", "open")),
			"reboot(the open module is loaded, the proprietary one is installed)", ""},
		"V100 with 595": {nil, "1db6", all(onDisk("595.91.07", "proprietary"), loaded("595.91.07", "proprietary")),
			"driver(driver 595.91.07 does not know all cards), reboot(module 595.91.07 is loaded)", ""},
		"a runfile's": {nil, "1db6", all(onDisk("595.91.07", "proprietary"), loaded("595.91.07", "proprietary"), func(f *host.Facts) { f.Driver.Value.Runfile = true }), "", CodeDriverTooNew},
		"fabric manager absent": {nil, "2330", all(onDisk("580.95.05", "open"), loaded("580.95.05", "open"), switches),
			"fabric-manager(1 NVSwitches: 1 NVSwitches, nvidia-fabricmanager is not installed)", ""},
		"fabric manager absent, driver of unknown origin": {nil, "2330", all(onDisk("580.95.05", "open"), loaded("580.95.05", "open"), switches,
			func(f *host.Facts) { f.Packages.Value.Installed = nil }), "", CodeFabricManager},
		"Secure Boot on Debian": {nil, "2330", func(f *host.Facts) {
			f.OS.Value.BaseID, f.OS.Value.BaseVersion, f.SecureBoot = "debian", "12", host.Known(true)
		}, "", CodeSecureBoot},
	} {
		t.Run(name, func(t *testing.T) {
			w, f := providing(), bare("ubuntu", "24.04", c.device)
			if c.want != nil {
				c.want(&w)
			}
			c.change(&f)
			f.PCI.Value[0].Driver = strings.TrimSuffix(f.PCI.Value[0].Driver, "nvidia")
			var got []string
			if w.Mode != ModeOperator {
				for _, a := range planDriver(w, f, nil) {
					reason, _, _ := strings.Cut(a.Reason, "; ")
					got = append(got, strings.TrimPrefix(a.ID, "gpu-1/")+"("+reason+")")
				}
			}
			if s := strings.Join(got, ", "); s != c.actions {
				t.Errorf("actions\n%s\nwant\n%s", s, c.actions)
			}
			found := Findings(w, f)
			blocked := diag.Code("")
			for _, e := range found {
				if e.Severity == diag.Blocks {
					blocked = e.Code
				}
			}
			if c.blocks == "" && blocked != "" || c.blocks != "" && !hasBlocking(found, c.blocks) {
				t.Errorf("blocking %q of %+v, want %q", blocked, found, c.blocks)
			}
		})
	}
}

func hasBlocking(found []diag.Finding, code diag.Code) bool {
	for _, f := range found {
		if f.Code == code && f.Severity == diag.Blocks {
			return true
		}
	}
	return false
}
