package nvidia

import (
	"strings"
	"testing"
)

func TestMIGModesThatWait(t *testing.T) {
	for _, tc := range []struct {
		name, text, want, waiting, err string
	}{
		{"on", "0, Enabled, Enabled\n1, [N/A], [N/A]\n", "Enabled", "", ""},
		{"one waits", "0, Disabled, Enabled\n1, Enabled, Enabled\n", "Enabled", "GPU 0 is disabled, pending enabled", ""},
		{"off waits", "2, Enabled, Disabled\n", "Disabled", "GPU 2 is enabled, pending disabled", ""},
		{"refused", "0, Disabled, Disabled\n", "Enabled", "", "GPU 0 stays disabled"},
		{"nothing that is a GPU", "No devices were found\n", "Enabled", "", ""},
	} {
		got, err := migWaiting(tc.text, tc.want)
		if strings.Join(got, "; ") != tc.waiting || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: %q, %v", tc.name, got, err)
		}
	}
}
