package nvidia

import (
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/host"
)

func TestEveryCardHasItsGeneration(t *testing.T) {
	for id, c := range cards() {
		g, ok := generationOf(id)
		if !ok {
			t.Errorf("%s (%s) is in no range", id, c.Model)
		}
		byCompute := map[string]string{"6": "Pascal", "7.0": "Volta", "7.5": "Turing", "8.0": "Ampere", "8.6": "Ampere", "8.9": "Ada", "9": "Hopper", "10": "Blackwell", "12": "Blackwell"}
		major, _, _ := strings.Cut(c.Compute, ".")
		name := byCompute[c.Compute]
		if name == "" {
			name = byCompute[major]
		}
		if g.Name != name {
			t.Errorf("%s (%s, %s): generation %s", id, c.Model, c.Compute, g.Name)
		}
	}
}

func TestOnlyGPUsAreCounted(t *testing.T) {
	f := host.Facts{PCI: host.Known([]host.PCIDevice{
		gpu("0000:18:00.0", "2330"), {Vendor: "10de", Device: "22a3", Class: "0680"}, {Vendor: "10de", Device: "22e8", Class: "0403"},
		{Vendor: "15b3", Device: "1021", Class: "0207"}, {Vendor: "1a03", Device: "2000", Class: "0300"}, {Vendor: "10de", Device: "2b85", Class: "0300"},
	})}
	if n := len(GPUs(f)); n != 2 {
		t.Errorf("%d GPUs, want 2", n)
	}
	if n := len(Switches(f)); n != 1 {
		t.Errorf("%d NVSwitches, want 1", n)
	}
	if o := Others(f); len(o) != 0 {
		t.Errorf("others: %v", o)
	}
}

func TestCompare(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"570.86.15", "570.124.06", -1}, {"580.95.05", "580.95.05", 0}, {"550.120", "550.127.05", -1}, {"1.20.0", "1.19.1", 1},
		{"1.20.0~rc.1", "1.20.0", 0}, {"580", "580.0.0", 0}, {"", "1", -1},
	} {
		if got := compare(c.a, c.b); got != c.want {
			t.Errorf("compare(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
	if v := upstream("1:1.20.0-1"); v != "1.20.0" {
		t.Error(v)
	}
}
