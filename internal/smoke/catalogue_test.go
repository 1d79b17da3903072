package smoke

import (
	"testing"

	"github.com/gpuctl/gpuctl/internal/diag"
)

func TestEveryCodeIsInTheCatalogue(t *testing.T) {
	for _, code := range []string{
		CodeCount, CodeNoAllocatable, CodeLogCut, CodeSMI, CodeProgram, CodeForeignUUID, CodeDuplicateUUID, CodeUUIDCount,
		CodeDeviceNodes, CodeCompute, CodeImageTooNew, CodeImageTooOld, CodeImagePull, CodeContainer, CodeUnschedulable,
		CodeAdmission, CodeSharedRequest, CodeTimeout, "fabric-not-ready",
	} {
		if p, ok := diag.Lookup(diag.Code(code)); !ok || string(p.Code) != code {
			t.Errorf("%s is not in the catalogue", code)
		}
	}
}
