package nvidia

import (
	"errors"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/bootstrap/remote/remotetest"
	"github.com/gpuctl/gpuctl/internal/diag"
)

// handedOver leaves the driver to an operator as GPU Operator 26.7 is.
func handedOver() Want {
	w := providing()
	w.Mode = ModeOperator
	w.Images = Images{
		Repository: "nvcr.io/nvidia/driver", Versions: []string{"595.91.07", "580.173.02"}, OS: []string{"ubuntu22.04", "ubuntu24.04"},
	}
	return w
}

// TestTheOperatorBringsTheDriver: Debian 13 is case 025 (NVIDIA/gpu-operator#2225).
func TestTheOperatorBringsTheDriver(t *testing.T) {
	for name, c := range map[string]struct {
		os     [2]string
		device string
		change func(*Want, *host.Facts)
		code   diag.Code
		says   string
	}{
		"Ubuntu":                {[2]string{"ubuntu", "24.04"}, "2330", nil, "", ""},
		"V100, the 580":         {[2]string{"ubuntu", "22.04"}, "1db6", nil, "", ""},
		"Debian 13":             {[2]string{"debian", "13"}, "2330", nil, CodeDriverImage, "nvcr.io/nvidia/driver:580.173.02-debian13"},
		"another branch":        {[2]string{"ubuntu", "24.04"}, "2330", func(w *Want, _ *host.Facts) { w.Driver.Branch = "570" }, CodeDriverImage, "the set knows images of 595.91.07, 580.173.02"},
		"V100 with 595":         {[2]string{"ubuntu", "24.04"}, "1db6", func(w *Want, _ *host.Facts) { w.Driver.Branch, w.Driver.Explicit = "595", true }, CodeDriverTooNew, "last branch 580"},
		"Secure Boot":           {[2]string{"ubuntu", "24.04"}, "2330", func(_ *Want, f *host.Facts) { f.SecureBoot = host.Known(true) }, CodeSecureBoot, "signs no modules"},
		"a kernel of one's own": {[2]string{"ubuntu", "24.04"}, "2330", func(_ *Want, f *host.Facts) { f.System.Value.Kernel = "6.11.3" }, CodeDriverImage, "kernel 6.11.3"},
		"nouveau":               {[2]string{"ubuntu", "24.04"}, "2330", func(_ *Want, f *host.Facts) { f.PCI.Value[0].Driver = "nouveau" }, CodeNouveau, "nouveau drives 1"},
		"a driver on disk":      {[2]string{"ubuntu", "24.04"}, "2330", func(_ *Want, f *host.Facts) { f.Driver.Value.FileVersion = "570.1.2" }, CodeDriverMode, "570.1.2"},
		"a driver that serves": {[2]string{"ubuntu", "24.04"}, "2330", func(_ *Want, f *host.Facts) {
			f.Driver, f.SMI = good().Driver, good().SMI
		}, CodeDriverMode, "580.95.05"},
		// What the operator's own container has loaded leaves nothing else behind.
		"the operator's": {[2]string{"ubuntu", "24.04"}, "2330", func(_ *Want, f *host.Facts) {
			f.Driver = host.Known(host.Driver{LoadedVersion: "580.173.02", Flavour: "open", Nodes: []string{"/dev/nvidia-uvm"}})
		}, "", ""},
		"the operator's on a board": {[2]string{"ubuntu", "24.04"}, "2330", func(_ *Want, f *host.Facts) {
			f.Driver = host.Known(host.Driver{LoadedVersion: "580.173.02", Flavour: "open"})
			f.Fabric = host.Known(host.Fabric{Switches: 4})
		}, "", ""},
	} {
		w, f := handedOver(), bare(c.os[0], c.os[1], c.device)
		if c.change != nil {
			c.change(&w, &f)
		}
		found := Findings(w, f)
		if c.code == "" && len(found) > 0 {
			t.Errorf("%s: %+v", name, found)
		}
		if c.code != "" && (len(found) == 0 || found[0].Code != c.code || found[0].Severity != diag.Blocks || !strings.Contains(found[0].Evidence, c.says)) {
			t.Errorf("%s: %+v, want %s %q", name, found, c.code, c.says)
		}
		if got := Plan(w, f, nil); len(got) > 0 {
			t.Errorf("%s: the host is changed: %+v", name, got)
		}
	}
}

// TestAMissingToolkitIsAFinding: another version is never taken instead.
func TestAMissingToolkitIsAFinding(t *testing.T) {
	key, fingerprint := newKey(t, "repository")
	w := want()
	w.Toolkit.KeyFingerprint = fingerprint
	fake := remotetest.New(t).InOrder()
	fake.Expect("fetch package key").Output(string(armored(t, key)))
	fake.Expect("install NVIDIA Container Toolkit 1.20.0").Exit(65, "E: something\nthe package lists have no nvidia-container-toolkit=1.20.0-1, after a refresh\n")
	err := Plan(w, good(), fake)[0].Apply(t.Context(), quiet)
	var lacks *NoCandidateError
	if !errors.As(err, &lacks) || lacks.DiagCode() != CodeToolkitPackage || lacks.Finding.Machine != "gpu-1" ||
		err.Error() != "the package lists have no nvidia-container-toolkit=1.20.0-1, after a refresh" {
		t.Errorf("%v", err)
	}
	if found := diag.ExplainText(err.Error()); len(found) != 1 || found[0].Code != CodeToolkitPackage {
		t.Errorf("explained as %+v", found)
	}
	fake = remotetest.New(t).InOrder()
	fake.Expect("fetch package key").Output(string(armored(t, key)))
	fake.Expect("install NVIDIA Container Toolkit 1.20.0").Exit(100, "E: broken\n")
	if err := Plan(w, good(), fake)[0].Apply(t.Context(), quiet); err == nil || errors.As(err, &lacks) && lacks.Finding.Evidence == "E: broken" {
		t.Errorf("another failure: %v", err)
	}
}
