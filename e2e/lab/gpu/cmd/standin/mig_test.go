package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/gpuctl/gpuctl/e2e/lab/gpu/scenario"
)

// The form is that of the operator's default-mig-parted-config.
const parted = `version: v1
mig-configs:
  all-disabled:
    - devices: all
      mig-enabled: false
  all-1g.10gb:
    - device-filter: ["0x233010DE", "0x233110DE", "0x20B510DE"]
      devices: all
      mig-enabled: true
      mig-devices:
        "1g.10gb": 7
    - device-filter: ["0x20B010DE"]
      devices: all
      mig-enabled: true
      mig-devices:
        "1g.10gb": 4
  own:
    - devices: [1]
      mig-enabled: true
      mig-devices: {"1g.10gb": 2, "3g.40gb": 1}
`

func TestConfigurationsOfTheMIGManager(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(parted), 0o600); err != nil {
		t.Fatal(err)
	}
	s := scenario.H100(2).For("a")
	for config, want := range map[string]string{
		"all-disabled": "[[off] [off]]",
		"all-1g.10gb":  "[[1g.10gb 1g.10gb 1g.10gb 1g.10gb 1g.10gb 1g.10gb 1g.10gb] [1g.10gb 1g.10gb 1g.10gb 1g.10gb 1g.10gb 1g.10gb 1g.10gb]]",
		"own":          "[[] [3g.40gb 1g.10gb 1g.10gb]]",
	} {
		got, err := layoutOf(file, config, s)
		if err != nil || fmt.Sprint(got) != want {
			t.Errorf("%s: %v, %v; want %s", config, got, err, want)
		}
		if differs(got, s) == (config == "all-disabled") {
			t.Errorf("%s on whole GPUs: differs is wrong", config)
		}
	}
	if _, err := layoutOf(file, "all-5g", s); err == nil {
		t.Error("a configuration that is not there is taken")
	}
	cut, err := s.GPUs[1].Cut([]string{"3g.40gb", "1g.10gb", "1g.10gb"})
	if err != nil {
		t.Fatal(err)
	}
	s.GPUs[1].MIG = &scenario.MIG{Current: "Enabled", Pending: "Enabled", Slices: cut}
	if got, _ := layoutOf(file, "own", s); differs(got, s) {
		t.Error("what is cut already is cut again")
	}
}
