package nvidia

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/host"
)

// grace are cards on the board of an ARM processor.
func grace() []string { return []string{"2342", "2348", "2941", "31c2", "2e12"} }

// TestPackagesOfEveryCardAndSystem pins what is installed for every card of the
// reference table on every distribution, with and without Secure Boot. All of
// these machines are synthetic: no report shows each pair. Cards that get the
// same are one entry, so that a card which is left out shows.
func TestPackagesOfEveryCardAndSystem(t *testing.T) {
	var out bytes.Buffer
	for _, os := range [][2]string{{"ubuntu", "22.04"}, {"ubuntu", "24.04"}, {"ubuntu", "26.04"}, {"debian", "12"}, {"debian", "13"}} {
		for _, secure := range []bool{false, true} {
			fmt.Fprintf(&out, "%s %s, Secure Boot %v\n", os[0], os[1], secure)
			cards, order := map[string][]string{}, []string(nil)
			for _, device := range models() {
				got := packagesOf(os, secure, device)
				if cards[got] == nil {
					order = append(order, got)
				}
				cards[got] = append(cards[got], device)
			}
			for _, got := range order {
				fmt.Fprintf(&out, "  %s\n%s", strings.Join(cards[got], " "), got)
			}
		}
	}
	golden(t, "driver-packages.golden", out.Bytes())
}

// packagesOf is what one card gets, as lines.
func packagesOf(os [2]string, secure bool, device string) string {
	f := bare(os[0], os[1], device)
	f.SecureBoot = host.Known(secure)
	if slices.Contains(grace(), device) {
		f.System.Value.Arch, f.System.Value.Kernel = "aarch64", "6.8.0-85-generic-64k"
	}
	if device == "2901" || device == "3182" { // boards of eight, managed over InfiniBand functions
		f.PCI.Value = append(f.PCI.Value, host.PCIDevice{Address: "0000:05:00.0", Vendor: "15b3", Device: "1021", Class: "0207"})
	}
	c, no := Choose(providing(), f)
	if no != nil {
		return fmt.Sprintf("    %s: %s\n", no.Code, no.Evidence)
	}
	p, no := PackagesFor(providing(), f, c)
	if no != nil {
		return fmt.Sprintf("    %s %d\n    %s: %s\n", c.Flavour, c.Branch, no.Code, no.Evidence)
	}
	lines := []string{fmt.Sprintf("%s %d", c.Flavour, c.Branch)}
	if p.Source.Repository != "" {
		lines = append(lines, p.Source.Repository, p.Source.KeyURL+" "+p.Source.KeyFingerprint)
	}
	lines = append(lines, strings.Join(p.names(f.System.Value.Kernel), " "))
	lines = append(lines, "fabric manager: "+p.FabricManager)
	if nvlink5(f) {
		lines[len(lines)-1] += ", nvlsm, libnvsdm"
	}
	return "    " + strings.Join(lines, "\n    ") + "\n"
}

// TestDriverOfRecordedMachines pins what would be chosen for the machines of
// public reports, whatever driver they had, and names the cards of the reference
// table that no report here shows: those are judged by synthetic machines alone.
func TestDriverOfRecordedMachines(t *testing.T) {
	files, err := filepath.Glob("testdata/machines/[0-9]*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d recorded machines, %v", len(files), err)
	}
	var out bytes.Buffer
	shown := map[string]bool{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		f, err := host.Parse(b, "M")
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		gpus := GPUs(f)
		if len(gpus) == 0 {
			continue
		}
		var names []string
		for _, g := range gpus {
			shown[g.Device] = true
			if name := g.Device + " " + Model(g); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		what := ""
		if c, no := Choose(providing(), f); no != nil {
			what = fmt.Sprintf("%s: %s", no.Code, no.Evidence)
		} else {
			what = fmt.Sprintf("%s %d (%s)", c.Flavour, c.Branch, c.Reason)
		}
		fmt.Fprintf(&out, "%s: %s: %s\n", strings.TrimSuffix(filepath.Base(file), ".txt"), strings.Join(names, ", "), what)
	}
	fmt.Fprintln(&out, "\nin no report here, synthetic alone:")
	for _, device := range models() {
		if !shown[device] {
			fmt.Fprintf(&out, "  %s %s\n", device, Model(host.PCIDevice{Vendor: "10de", Device: device}))
		}
	}
	golden(t, "driver-recorded.golden", out.Bytes())
}
