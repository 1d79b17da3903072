package smi

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/e2e/lab/gpu/scenario"
)

// root lays a library that carries s and the nodes of the given minors.
func root(t *testing.T, s scenario.Scenario, nodes ...string) string {
	t.Helper()
	dir := t.TempDir()
	lib := filepath.Join(dir, "usr/lib/x86_64-linux-gnu")
	for _, d := range []string{lib, filepath.Join(dir, "dev")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	data, err := s.AppendTo([]byte("\x7fELF"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(lib, "libnvidia-ml.so.1"), data, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		if err := os.WriteFile(filepath.Join(dir, "dev", n), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func run(t *testing.T, root string, args ...string) (string, int) {
	t.Helper()
	var out bytes.Buffer
	code := Run(World{
		Root: root, Stdout: &out, Stderr: &out,
		Now:  func() time.Time { return time.Date(2026, 8, 27, 18, 5, 38, 0, time.UTC) },
		Hang: func() { t.Error("hangs") },
	}, args)
	return out.String(), code
}

func TestTheSecondGPUAloneIsIndexZeroInAContainer(t *testing.T) {
	s := scenario.H100(2).For("gpu-1")
	dir := root(t, s, "nvidiactl", "nvidia1")
	out, code := run(t, dir, "-L")
	if want := "GPU 0: NVIDIA H100 PCIe (UUID: " + s.GPUs[1].UUID + ")\n"; out != want || code != 0 {
		t.Errorf("-L: %q, exit %d; want %q", out, code, want)
	}
}

func TestQueryPrintsUnitsUnlessTold(t *testing.T) {
	s := scenario.T4(1).For("gpu-1")
	dir := root(t, s, "nvidiactl", "nvidia0")
	out, _ := run(t, dir, "--query-gpu=index,name,pci.bus_id,memory.total,mig.mode.current", "--format=csv")
	want := "index, name, pci.bus_id, memory.total [MiB], mig.mode.current\n0, Tesla T4, 00000000:41:00.0, 15360 MiB, [N/A]\n"
	if out != want {
		t.Errorf("got %q, want %q", out, want)
	}
	out, _ = run(t, dir, "--query-gpu=memory.total,uuid", "--format=csv,noheader,nounits")
	if want := "15360, " + s.GPUs[0].UUID + "\n"; out != want {
		t.Errorf("got %q, want %q", out, want)
	}
}

func TestFailuresHaveTheirExitCode(t *testing.T) {
	healthy := scenario.H100(2).For("gpu-1")
	mismatch, lost := healthy, healthy
	mismatch.Faults.Library = "580.178.09"
	lost.Faults.Lost = []int{1}
	for name, c := range map[string]struct {
		root string
		args []string
		code int
		text string
	}{
		"no library":    {t.TempDir(), nil, 12, "couldn't find libnvidia-ml.so"},
		"no module":     {root(t, healthy), nil, 9, "couldn't communicate with the NVIDIA driver"},
		"mismatch":      {root(t, mismatch, "nvidiactl", "nvidia0"), nil, 18, "NVML library version: 580.178\n"},
		"no device":     {root(t, healthy, "nvidiactl"), []string{"-L"}, 6, "No devices were found"},
		"lost":          {root(t, lost, "nvidiactl", "nvidia0", "nvidia1"), []string{"-L"}, 15, "device handle for GPU1: 0000:51:00.0"},
		"unknown field": {root(t, healthy, "nvidiactl", "nvidia0"), []string{"--query-gpu=nope", "--format=csv"}, 2, `Field "nope" is not a valid field`},
		"unknown word":  {root(t, healthy, "nvidiactl", "nvidia0"), []string{"--nope"}, 2, "Invalid combination"},
	} {
		out, code := run(t, c.root, c.args...)
		if code != c.code || !strings.Contains(out, c.text) {
			t.Errorf("%s: exit %d, %q; want %d and %q", name, code, out, c.code, c.text)
		}
	}
}

func TestTableIsAsWideAsTheRealOne(t *testing.T) {
	for _, driver := range []string{"580.95.05", "610.57.04"} {
		s := scenario.HGX().For("gpu-1")
		s.Driver = driver
		out, _ := run(t, root(t, s, "nvidiactl", "nvidia0"))
		for i, line := range strings.Split(strings.TrimSuffix(out, "\n"), "\n") {
			if i > 0 && line != "" && len(line) != len(full) {
				t.Errorf("driver %s line %d has %d columns, want %d: %q", driver, i, len(line), len(full), line)
			}
		}
	}
}

func TestAContainerListsTheSlicesWhoseNodesItHas(t *testing.T) {
	s := scenario.H100(1).For("gpu-1")
	slices, err := s.GPUs[0].Cut([]string{"1g.10gb", "1g.10gb"})
	if err != nil {
		t.Fatal(err)
	}
	s.GPUs[0].MIG = &scenario.MIG{Current: "Enabled", Pending: "Enabled", Slices: slices}
	dir := root(t, s, "nvidiactl", "nvidia0")
	caps := filepath.Join(dir, "dev/nvidia-caps")
	if err := os.MkdirAll(caps, 0o755); err != nil {
		t.Fatal(err)
	}
	gi, _ := slices[1].Caps(0)
	if err := os.WriteFile(filepath.Join(caps, fmt.Sprintf("nvidia-cap%d", gi)), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	out, _ := run(t, dir, "-L")
	if want := "GPU 0: NVIDIA H100 PCIe (UUID: " + s.GPUs[0].UUID + ")\n  MIG 1g.10gb      Device  0: (UUID: " + slices[1].UUID + ")\n"; out != want {
		t.Errorf("got %q, want %q", out, want)
	}
}
