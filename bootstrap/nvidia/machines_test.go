package nvidia

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/host"
)

// TestRecordedMachines reads answers of the probe and judges what they show.
// The first line of a file says where it comes from: one that begins "# recorded"
// is rebuilt from facts of a report, and names what had to be filled in around
// them; one that begins "# synthetic" stands for no report, and is counted apart.
func TestRecordedMachines(t *testing.T) {
	files, err := filepath.Glob("testdata/machines/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	right := machinesSeen()
	recorded, synthetic, healthy, silent := 0, 0, 0, 0
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source, _, _ := strings.Cut(string(b), "\n")
		switch made := strings.HasPrefix(name, "synthetic-"); {
		case made && strings.HasPrefix(source, "# synthetic: "):
			synthetic++
		case !made && strings.HasPrefix(source, "# recorded: case "+name[:3]):
			recorded++
		default:
			t.Errorf("%s says %q", name, source)
		}
		seen, err := host.Parse(b, "M")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		c, ok := right[name]
		delete(right, name)
		if got := shown(seen); !ok || got != c.shows {
			t.Errorf("%s shows\n%q, want\n%q", name, got, c.shows)
		}
		if got := codesOf(seen); got != c.codes {
			t.Errorf("%s has %q, want %q", name, got, c.codes)
		}
		if c.codes == "" {
			silent++
		}
		if !strings.Contains(c.codes, "/blocks") && !strings.Contains(c.codes, "/warns") {
			healthy++
		}
	}
	for name := range right {
		t.Errorf("there is no %s", name)
	}
	t.Logf("%d recorded machines, %d synthetic; nothing blocks or warns on %d of them, on %d nothing is found at all", recorded, synthetic, healthy, silent)
	if recorded < 35 || synthetic < 16 || healthy < 23 {
		t.Errorf("machines have gone: %d recorded, %d synthetic, %d healthy", recorded, synthetic, healthy)
	}
}

// shown puts the facts of a machine on a line: system, driver, cards on the bus,
// cards that nvidia-smi shows with memory, MIG mode and slices, switches.
func shown(seen host.Facts) string {
	var out []string
	if o := seen.OS.Value; o.ID != "" {
		out = append(out, o.BaseID+" "+o.BaseVersion)
	}
	if d := seen.Driver.Value; d.LoadedVersion != "" {
		out = append(out, d.LoadedVersion+" "+d.Flavour)
	}
	out = append(out, fmt.Sprintf("%d GPUs", len(GPUs(seen))))
	count, order := map[string]int{}, []string{}
	for _, g := range seen.SMI.Value.GPUs {
		text := fmt.Sprintf("%s %d MiB", g.Name, g.MemoryMiB)
		if g.MIG == "Enabled" || g.MIGPending == "Enabled" {
			text += " MIG"
			for _, s := range g.Slices {
				text += " " + s.Profile
			}
		}
		if count[text]++; count[text] == 1 {
			order = append(order, text)
		}
	}
	for _, text := range order {
		out = append(out, fmt.Sprintf("%d x %s", count[text], text))
	}
	if n := max(seen.Fabric.Value.Switches, len(Switches(seen))); n > 0 {
		out = append(out, fmt.Sprintf("%d NVSwitches", n))
	}
	return strings.Join(out, ", ")
}

// codesOf are the codes, with their severities, that a machine of unknown purpose
// is given, in order; that files show a part of a machine is no finding here.
func codesOf(seen host.Facts) string {
	found := Findings(Want{Machine: "gpu-1", Mode: ModeKeep}, seen)
	for _, f := range host.Findings(host.Want{Machine: "gpu-1"}, seen) {
		if f.Code != host.CodeProbeIncomplete {
			found = append(found, f)
		}
	}
	var out []string
	for _, f := range found {
		out = append(out, string(f.Code)+"/"+string(f.Severity))
	}
	sort.Strings(out)
	return strings.Join(out, " ")
}
