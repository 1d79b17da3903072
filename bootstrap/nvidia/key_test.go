package nvidia

import (
	"fmt"
	"testing"

	"github.com/gpuctl/gpuctl/internal/diag"
)

func TestAWrongKeyIsExplained(t *testing.T) {
	_, err := PinnedKey([]byte("<html>login</html>"), "C95B321B61E88C1809C4F759DDCAE044F796ECB0")
	if p, ok := diag.Explain(fmt.Errorf("fetching: %w", err)); !ok || p.Code != CodePackageKey {
		t.Errorf("%v is explained by %s", err, p.Code)
	}
}
