package nvidia

import (
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/internal/diag"
)

func xid(pci string, n int, text string) host.KernelMsg {
	return host.KernelMsg{PCI: pci, Xid: n, Text: text}
}

// Right answers of leptonai/gpud#46 and #1174, NVIDIA/open-gpu-kernel-modules#1150.
func TestXidsByWhatTheyMean(t *testing.T) {
	f := good()
	f.KernelLog = host.Known([]host.KernelMsg{
		xid("0000:cb:00", 13, ""), xid("0000:cb:00", 109, ""), xid("0000:9b:00", 94, ""), xid("0019:01:00", 149, "NETIR Fatal XC0"),
		xid("0018:01:00", 145, "RLW_RXPIPE Nonfatal XC0"), xid("0000:2a:00", 120, ""), xid("0000:2a:00", 154, "changed from 0x0 (None) to 0x1 (GPU Reset Required)"),
		xid("0000:dc:00", 45, "caused by previous Xid 149"), xid("0000:01:00", 31, ""), xid("0000:01:00", 154, "to 0x0 (None)"),
		xid("0000:02:00", 79, ""), xid("0000:02:00", 79, ""), xid("0000:03:00", 48, ""), xid("0000:03:00", 95, ""), xid("0000:04:00", 64, ""),
		xid("000f:01:00", 169, ""), xid("0000:05:00", 74, ""), xid("0000:06:00", 999, ""),
	})
	right := []expected{
		{CodeLost, diag.Warns, "0000:02:00: Xid 79 (fallen off the bus)"},
		{CodeECCUncorrected, diag.Warns, "0000:03:00: Xid 48, 95"},
		{CodeRemapFailed, diag.Warns, "0000:04:00: Xid 64"},
		{CodeNVLink, diag.Warns, "0000:05:00: Xid 74; 0019:01:00: Xid 149 (fatal)"},
		{CodeGSP, diag.Warns, "0000:2a:00: Xid 120"},
		{CodeRecovery, diag.Warns, "0000:2a:00: Xid 154 (GPU Reset Required)"},
		{CodeXidFlavour, diag.Warns, "000f:01:00: Xid 169"},
		{CodeXid, diag.Warns, "0000:cb:00: Xid 109 (reset)"},
		{CodeECCContained, diag.Informs, "0000:9b:00: Xid 94"},
		{CodeProgramXid, diag.Informs, "0000:01:00: Xid 31; 0000:cb:00: Xid 13; 0000:dc:00: Xid 45"},
	}
	found := Findings(want(), f)
	if len(found) != len(right) {
		t.Fatalf("%+v", found)
	}
	for i, w := range right {
		if found[i].Code != w.code || found[i].Severity != w.severity || found[i].Evidence != w.evidence {
			t.Errorf("%+v, want %+v", found[i], w)
		}
	}
	if !Good(f) {
		t.Error("errors of the past make the driver bad")
	}
}

// The immediate actions of NVIDIA's catalogue beyond those of the reports.
func TestXidsOfTheCatalogue(t *testing.T) {
	for _, row := range []struct {
		xid  int
		text string
		code diag.Code
	}{
		{46, "", CodeXid}, {62, "", CodeXid}, {110, "", CodeXid}, {143, "", CodeXid}, {158, "", CodeXid},
		{54, "", CodeXid}, {151, "", CodeXid},
		{140, "", CodeECCUncorrected}, {136, "", CodeNVLink}, {155, "", CodeNVLink},
		{144, "SAW Fatal XC1", CodeNVLink}, {150, "MSE Nonfatal XC0", ""},
		{8, "", CodeProgramXid}, {32, "", CodeProgramXid}, {69, "", CodeProgramXid}, {72, "", CodeProgramXid},
		{96, "", CodeProgramXid}, {105, "", CodeProgramXid}, {135, "", CodeProgramXid},
		{38, "", ""}, {73, "", ""}, {92, "", ""}, {121, "", ""}, {137, "", ""}, {171, "", ""}, {999, "", ""},
	} {
		if code, _ := xidOf(xid("0000:01:00", row.xid, row.text)); code != row.code {
			t.Errorf("Xid %d %s: %q, want %q", row.xid, row.text, code, row.code)
		}
	}
}

func TestRecoveryActionsInTheirWordings(t *testing.T) {
	for text, action := range map[string]string{
		"GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)": "154 (Node Reboot Required)",
		"GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)":      "154 (Drain and Reset)",
		"GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)":   "",
		"cut": "154",
	} {
		if _, got := recovery(text); got != action {
			t.Errorf("%s: %q, want %q", text, got, action)
		}
	}
}
