package boot

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/e2e/lab/gpu/scenario"
)

func TestWhoHoldsTheCards(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*scenario.Scenario)
		want   string
	}{
		"healthy":    {func(*scenario.Scenario) {}, "nvidia"},
		"no driver":  {func(s *scenario.Scenario) { s.Driver = "" }, ""},
		"not loaded": {func(s *scenario.Scenario) { s.Faults.NotLoaded = true }, ""},
		"nouveau":    {func(s *scenario.Scenario) { s.Faults.Nouveau = true }, "nouveau"},
	} {
		s := scenario.HGX().For("gpu-1")
		c.change(&s)
		all := devices(s)
		if len(all) != 12 {
			t.Fatalf("%s: %d devices, want 8 GPUs and 4 switches", name, len(all))
		}
		if all[0].driver != c.want {
			t.Errorf("%s: driver %q, want %q", name, all[0].driver, c.want)
		}
	}
}

func TestDeviceAsSysfsShowsIt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "0000:41:00.0")
	d := pciDevice{bus: "0000:41:00.0", id: "10de:2331", class: class3D, driver: "nvidia"}
	if err := d.lay(dir); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"vendor": "0x10de", "device": "0x2331", "class": "0x030200"} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || strings.TrimSpace(string(got)) != want {
			t.Errorf("%s = %q, %v; want %q", name, got, err, want)
		}
	}
	config, err := os.ReadFile(filepath.Join(dir, "config"))
	if err != nil || string(config[:4]) != "\xde\x10\x31\x23" || string(config[9:12]) != "\x00\x02\x03" {
		t.Errorf("config begins with % x, %v", config[:12], err)
	}
	if to, err := os.Readlink(filepath.Join(dir, "driver")); err != nil || filepath.Base(to) != "nvidia" {
		t.Errorf("driver links to %q, %v", to, err)
	}
}
