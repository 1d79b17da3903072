//go:build lab

package lab_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/e2e/lab"
	"github.com/gpuctl/gpuctl/e2e/lab/gpu"
	"github.com/gpuctl/gpuctl/e2e/lab/gpu/scenario"
	"github.com/gpuctl/gpuctl/e2e/lab/machine"
)

// gpuMachines brings up one machine per scenario.
func gpuMachines(t *testing.T, id string, scenarios map[string]gpu.Scenario) (*lab.Lab, map[string]*machine.Machine) {
	t.Helper()
	l, err := lab.Up(t.Context(), lab.Options{ID: id, Out: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Down(context.Background()); err != nil {
			t.Error(err)
		}
	})
	removeOld(t, l)
	var specs []machine.Spec
	for name, s := range scenarios {
		doc, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		specs = append(specs, machine.Spec{Name: name, GPU: doc})
	}
	machines, err := l.Machines(t.Context(), specs...)
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*machine.Machine{}
	for _, m := range machines {
		byName[m.Name] = m
	}
	return l, byName
}

func faulty(f scenario.Faults) gpu.Scenario {
	s := gpu.H100(2)
	s.Faults = f
	return s
}

func TestGPUsAsAProbeSeesThem(t *testing.T) {
	l, m := gpuMachines(t, "test-gpus", map[string]gpu.Scenario{
		"well":     gpu.H100(2),
		"hidden":   faulty(scenario.Faults{Hidden: []int{1}}),
		"nouveau":  faulty(scenario.Faults{Nouveau: true}),
		"unloaded": faulty(scenario.Faults{NotLoaded: true}),
		"upgraded": faulty(scenario.Faults{Library: "580.105.08", HealedByReboot: true}),
	})
	uuids := strings.Join(gpu.H100(2).For("well").UUIDs(), "\n")
	const (
		query   = "nvidia-smi --query-gpu=uuid --format=csv,noheader"
		version = "nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -n 1"
		cards   = "cat /sys/bus/pci/devices/*/vendor | grep -c 0x10de"
		bound   = "basename $(readlink /sys/bus/pci/devices/0000:41:00.0/driver)"
	)
	expect(t, l, "ubuntu", m["well"], query, uuids)
	expect(t, l, "ubuntu", m["well"], cards, "2")
	expect(t, l, "root", m["well"], "modprobe nvidia-uvm && modinfo -F version nvidia", "580.95.05")

	expect(t, l, "ubuntu", m["hidden"], cards, "2")
	expect(t, l, "ubuntu", m["hidden"], query+" | wc -l", "1")
	expect(t, l, "ubuntu", m["nouveau"], bound, "nouveau")
	expect(t, l, "ubuntu", m["nouveau"], "nvidia-smi >/dev/null; echo $?", "9")

	expect(t, l, "ubuntu", m["unloaded"], "nvidia-smi >/dev/null; echo $?", "9")
	expect(t, l, "root", m["unloaded"], "modprobe nvidia && "+version, "580.95.05")

	expect(t, l, "ubuntu", m["upgraded"], "nvidia-smi >/dev/null; echo $?", "18")
	if err := m["upgraded"].Reboot(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect(t, l, "ubuntu", m["upgraded"], version, "580.105.08")
}

// TestToolkitOnASimulatedGPU: the packages install, the real toolkit finds the
// GPUs by itself, and a pin to the older version holds.
func TestToolkitOnASimulatedGPU(t *testing.T) {
	l, m := gpuMachines(t, "test-toolkit", map[string]gpu.Scenario{"a": gpu.A100(1)})
	a := m["a"]
	const install = "DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --allow-downgrades "
	const pin = "{nvidia-container-toolkit,nvidia-container-toolkit-base,libnvidia-container-tools,libnvidia-container1}="
	expect(t, l, "root", a, "curl -fsS "+l.Sources()["packages"]+"/gpgkey >/usr/share/keyrings/lab.asc && "+
		"echo 'deb [signed-by=/usr/share/keyrings/lab.asc] "+l.Sources()["packages"]+"/stable/deb/amd64 /' >/etc/apt/sources.list.d/lab.list && "+
		"apt-get -qq update && echo trusted", "trusted")
	for _, version := range []string{gpu.OlderToolkit, gpu.Toolkit} {
		expect(t, l, "root", a, install+pin+version+" >/dev/null 2>&1; nvidia-ctk --version | sed -n 's/.* version //p' | head -n 1",
			strings.TrimSuffix(version, "-1"))
	}
	expect(t, l, "root", a, "nvidia-ctk cdi list 2>/dev/null | grep -c "+gpu.A100(1).For("a").UUIDs()[0], "1")
}
