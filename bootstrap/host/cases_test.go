package host

import (
	"strings"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/internal/diag"
)

// The clocks of k3s-io/k3s#5163: another time zone is no difference, an hour
// ahead is one, two seconds are fine.
func TestClocksOfFourMachines(t *testing.T) {
	sent := time.Unix(1736157600, 0)
	for name, c := range map[string]struct {
		epoch int64
		code  diag.Code
	}{
		"gpu-a UTC":            {1736157600, ""},
		"gpu-b CET":            {1736157600, ""},
		"gpu-c ahead":          {1736161200, CodeClock},
		"gpu-d by two seconds": {1736157602, ""},
	} {
		at := time.Unix(c.epoch, 0)
		f := fit()
		f.Clock = compareClocks(Known(Clock{First: at, Last: at}), sent, sent.Add(300*time.Millisecond))
		found := Findings(agent(), f)
		switch {
		case c.code == "" && len(found) > 0:
			t.Errorf("%s: %+v", name, found)
		case c.code != "" && (len(found) != 1 || found[0].Code != c.code || found[0].Severity != diag.Blocks):
			t.Errorf("%s: %+v, want %s", name, found, c.code)
		}
	}
}

// The processes of NVIDIA/nvidia-container-toolkit#982: Docker's containerd is
// named, k3s's own (below the k3s unit) never gets into the section.
func TestTwoContainerdsOnOneMachine(t *testing.T) {
	others, err := parseOthers("trace|docker|/run/docker.sock\ntrace|containerd|/run/containerd/containerd.sock\nprocess|containerd|1501\nprocess|dockerd|1733\n")
	if err != nil {
		t.Fatal(err)
	}
	f := fit()
	f.Others = Known(others)
	found := Findings(agent(), f)
	if len(found) != 1 || found[0].Code != CodeSecondEngine || found[0].Severity != diag.Informs ||
		!strings.Contains(found[0].Evidence, "1733") || !strings.Contains(found[0].Evidence, "/run/k3s/containerd/containerd.sock") {
		t.Errorf("%+v", found)
	}
}
