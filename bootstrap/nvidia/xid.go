package nvidia

import (
	"fmt"
	"sort"
	"strings"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/internal/diag"
)

// Codes of Xid lines in the kernel log.
const (
	CodeECCUncorrected diag.Code = "gpu-ecc-uncorrected"
	CodeRemapFailed    diag.Code = "gpu-remap-failed"
	CodeECCContained   diag.Code = "gpu-ecc-contained"
	CodeNVLink         diag.Code = "gpu-nvlink-error"
	CodeGSP            diag.Code = "gpu-gsp-timeout"
	CodeRecovery       diag.Code = "gpu-recovery-needed"
	CodeXidFlavour     diag.Code = "gpu-module-flavour-xid"
	CodeProgramXid     diag.Code = "gpu-application-xid"
)

func xidCodes() []diag.Code {
	return []diag.Code{
		CodeLost, CodeECCUncorrected, CodeRemapFailed, CodeNVLink, CodeGSP, CodeRecovery, CodeXidFlavour, CodeXid, CodeECCContained, CodeProgramXid,
	}
}

// xids raises one finding for each kind of error, naming the GPUs in order of
// addresses. What happened since the last boot may be over: none of them blocks.
func (c *check) xids() {
	kinds := Xids(c.seen.KernelLog.Value)
	for _, code := range xidCodes() {
		list := kinds[code]
		if len(list) == 0 || c.raised(code) {
			continue
		}
		c.raise(code, "%s", strings.Join(list, "; "))
		if last := &c.found[len(c.found)-1]; last.Severity == diag.Blocks {
			last.Severity = diag.Warns
		}
	}
}

// Xids sorts the Xid lines of a kernel log by the entry that explains them, one
// text for each GPU, as NVIDIA's Xid catalogue and leptonai/gpud#46 do.
func Xids(log []host.KernelMsg) map[diag.Code][]string {
	of := map[diag.Code]map[string][]string{}
	for _, m := range log {
		code, what := xidOf(m)
		if code == "" {
			continue
		}
		if of[code] == nil {
			of[code] = map[string][]string{}
		}
		if !has(of[code][m.PCI], what) {
			of[code][m.PCI] = append(of[code][m.PCI], what)
		}
	}
	out := map[diag.Code][]string{}
	for code, gpus := range of {
		for pci, list := range gpus {
			out[code] = append(out[code], pci+": Xid "+strings.Join(list, ", "))
		}
		sort.Strings(out[code])
	}
	return out
}

// xidOf follows the column "Resolution Bucket (Immediate Action)" of NVIDIA's Xid
// catalogue. Those that ask for nothing at once, and unknown ones, are not told.
// Source: https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html
func xidOf(m host.KernelMsg) (diag.Code, string) {
	number := fmt.Sprint(m.Xid)
	switch m.Xid {
	case 48, 95, 140:
		return CodeECCUncorrected, number
	case 64:
		return CodeRemapFailed, number
	case 63, 94:
		return CodeECCContained, number
	case 74, 136, 155:
		return CodeNVLink, number
	case 144, 145, 146, 147, 148, 149, 150:
		if strings.Contains(m.Text, "Fatal") && !strings.Contains(m.Text, "Nonfatal") {
			return CodeNVLink, number + " (fatal)"
		}
	case 79:
		return CodeLost, number + " (fallen off the bus)"
	case 46, 62, 109, 110, 143, 156, 158:
		return CodeXid, number + " (reset)"
	case 54:
		return CodeXid, number + " (no auxiliary power)"
	case 151:
		return CodeXid, number + " (restart the machine)"
	case 119, 120:
		return CodeGSP, number
	case 154:
		return recovery(m.Text)
	case 169:
		return CodeXidFlavour, number
	}
	if m.Xid == 43 || m.Xid == 45 || restartsApp(m.Xid) {
		return CodeProgramXid, number
	}
	return "", ""
}

// restartsApp says that NVIDIA asks for the program to be started again, no more:
// faults of push buffers, memory accesses, copy engines, video engines.
func restartsApp(xid int) bool {
	for _, span := range [][2]int{
		{8, 8}, {11, 11}, {13, 13}, {25, 25}, {31, 32}, {39, 41}, {60, 60}, {68, 72}, {75, 77}, {80, 80}, {82, 86}, {88, 89},
		{96, 105}, {126, 135}, {139, 139},
	} {
		if span[0] <= xid && xid <= span[1] {
			return true
		}
	}
	return false
}

// recovery reads the last bracket of Xid 154: "... to 0x1 (GPU Reset Required)".
func recovery(text string) (diag.Code, string) {
	at := strings.LastIndexByte(text, '(')
	if at < 0 {
		return CodeRecovery, "154"
	}
	action := strings.TrimRight(text[at+1:], ") ")
	if action == "None" {
		return "", ""
	}
	return CodeRecovery, "154 (" + action + ")"
}
