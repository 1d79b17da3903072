package charts

import (
	"testing"

	"github.com/gpuctl/gpuctl/internal/diag"
)

func TestWaitsEndWithAnEntry(t *testing.T) {
	for _, c := range []struct {
		what, reason string
		code         diag.Code
	}{
		{"operands", "daemonset nvidia-driver-daemonset: container driver: ImagePullBackOff: Back-off pulling image \"nvcr.io/nvidia/driver:580.95.05-debian13\"", "driver-image-missing"},
		{"operands", "daemonset gpu-feature-discovery: 0 of 1 ready", "operator-not-ready"},
		{"node labels", "no node feature discovery label yet on gpu-1", "nfd-labels-missing"},
		{"operator deployment", "no deployment in namespace gpu-operator", "operator-deployment-down"},
		{"ClusterPolicy", "state is notReady (OperandNotReady)", "operator-not-ready"},
		{"allocatable GPUs", "", "smoke-nothing-allocatable"},
		{"something", "", "operator-gates-timeout"},
	} {
		if got := (&WaitError{What: c.what, Reason: c.reason}).DiagCode(); got != c.code {
			t.Errorf("%s: %s: %s, want %s", c.what, c.reason, got, c.code)
		}
	}
	if (&ForeignError{}).DiagCode() != "operator-foreign" {
		t.Error("a foreign operator")
	}
	for _, code := range Codes() {
		if _, ok := diag.Lookup(code); !ok {
			t.Errorf("%s is not in the catalogue", code)
		}
	}
}
