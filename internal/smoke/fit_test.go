package smoke

import (
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/internal/cuda"
)

// The test image is held against driver and card before its pod is made (case 060).
func TestTheImageIsJudgedBeforeThePod(t *testing.T) {
	v100, h100, b200 := GPU{UUID: "GPU-a", Name: "Tesla V100-SXM2-16GB", Compute: "7.0"}, GPU{UUID: "GPU-b", Name: "NVIDIA H100 80GB HBM3", Compute: "9.0"}, GPU{UUID: "GPU-c", Name: "NVIDIA B200", Compute: "10.0"}
	for name, c := range map[string]struct {
		cuda, floor, driver string
		gpu                 GPU
		code, shows         string
	}{
		"it fits":                          {"12.5", "525.60.13", "580.95.05", h100, "", ""},
		"minor-version compatibility":      {"12.8", "525.60.13", "550.90.07", h100, "", ""},
		"below the set's floor":            {"12.5", "525.60.13", "470.256.02", h100, CodeImageTooNew, "needs driver 525.60.13, the node has 470.256.02"},
		"below the floor of its CUDA":      {"13.0", "", "550.90.07", h100, cuda.CodeNeedsDriver, "CUDA 13 needs driver 580.65.06"},
		"a card that its CUDA has dropped": {"13.0", "580.65.06", "580.95.05", v100, cuda.CodeDropsGPU, "compute capability 7.0"},
		"a newer card may run it by PTX":   {"12.5", "525.60.13", "580.95.05", b200, "", ""},
		"nothing is known of the image":    {"", "", "470.256.02", h100, "", ""},
		"nothing is known of the driver":   {"13.0", "580.65.06", "", h100, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{Image: "img", CUDA: c.cuda, MinDriver: c.floor}
			switch f := o.unfit(Node{Name: "gpu-1", Driver: c.driver, Host: []GPU{c.gpu}}); {
			case c.code == "" && f != nil:
				t.Errorf("%+v", f)
			case c.code != "" && (f == nil || f.Code != c.code || !strings.Contains(f.Evidence, c.shows)):
				t.Errorf("%+v, want %s with %q", f, c.code, c.shows)
			}
		})
	}
}
