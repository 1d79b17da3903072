package charts

import "github.com/gpuctl/gpuctl/internal/diag"

// DiagCode is the entry of the catalogue that the last reason speaks of, else
// that of the gate that stayed shut.
func (e *WaitError) DiagCode() diag.Code {
	if found := diag.ExplainText(e.Reason); len(found) > 0 {
		return found[0].Code
	}
	if code, ok := gateCodes()[e.What]; ok {
		return code
	}
	return codeGates
}

const (
	codeGates   diag.Code = "operator-gates-timeout"
	codeForeign diag.Code = "operator-foreign"
)

// gateCodes are by the names that WaitOperatorReady gives its gates.
func gateCodes() map[string]diag.Code {
	return map[string]diag.Code{
		"operator deployment": "operator-deployment-down",
		"node labels":         "nfd-labels-missing",
		"driver":              "operand-waits",
		"device plugin":       "device-plugin-failing",
		"operands":            "operator-not-ready",
		"ClusterPolicy":       "operator-not-ready",
		"allocatable GPUs":    "smoke-nothing-allocatable",
	}
}

// DiagCode names the entry of the catalogue.
func (e *ForeignError) DiagCode() diag.Code { return codeForeign }

// Codes returns every code that errors of this package carry, beside those that
// diag.ExplainText finds.
func Codes() []diag.Code {
	out := []diag.Code{codeGates, codeForeign}
	for _, c := range gateCodes() {
		out = append(out, c)
	}
	return out
}
