package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap"
)

func someGPUs() bootstrap.GPUsResult {
	at := time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)
	busy := 37
	return bootstrap.GPUsResult{Cluster: "lab", GPUs: []bootstrap.GPUInfo{
		{Node: "gpu-1", Index: 0, UUID: "GPU-a", PCI: "0000:18:00.0", Model: "NVIDIA H100 PCIe", MemoryMiB: 81559, Driver: "580.95.05", CUDA: "13.0", MIG: "off",
			Sharing: "time-slicing, 4 pods for each GPU", Resource: "nvidia.com/gpu", Users: []string{"team/a", "team/b", "team/c"}, UsersSure: true, Utilisation: &busy, Health: "ok", ProvenAt: &at},
		{Node: "gpu-2", Index: -1, Model: "NVIDIA-H100-PCIe", Users: []string{"team/d"}, Health: "unknown"},
	}, Missing: []string{"gpu-2 was not reached (refused): index, UUID and health of its GPUs are not known"}}
}

func TestGPUList(t *testing.T) {
	f := func() *fakeEngine {
		return &fakeEngine{gpus: func(context.Context) (bootstrap.GPUsResult, error) { return someGPUs(), nil }}
	}
	for name, args := range map[string][]string{"gpu-list.txt": nil, "gpu-list-wide.txt": {"-o", "wide"}, "gpu-list.json": {"-o", "json"}} {
		got := runWith(t, f(), "", append([]string{"gpu", "list"}, args...)...)
		if got.code != 0 {
			t.Errorf("exit code %d: %s", got.code, got.err)
		}
		golden(t, name, got.out)
	}
	if got := runWith(t, &fakeEngine{}, "", "gpu", "list", "-o", "yaml"); got.code != 2 {
		t.Errorf("-o yaml: exit code %d", got.code)
	}
}

func TestShareRefusesBeforeAnythingChanges(t *testing.T) {
	for want, args := range map[string][]string{
		"--group is missing":                    {"set", "--time-slicing", "4"},
		"give one of":                           {"set", "--group", "a"},
		"give one of --time-slicing, --":        {"set", "--group", "a", "--time-slicing", "4", "--mps", "4"},
		"not sharing":                           {"set", "--group", "a", "--time-slicing", "1"},
		"at most 48":                            {"set", "--group", "a", "--mps", "49"},
		"refuses such requests always":          {"set", "--group", "a", "--mps", "4", "--only-one"},
		"give one of --time-slicing, --mps and": {"set", "--group", "a", "--mig", "1g.10gb", "--mps", "4"},
		"no MIG profile":                        {"set", "--group", "a", "--mig", "half"},
		"slices of one profile alone":           {"set", "--group", "a", "--mig", "balanced", "--strategy", "single"},
		"single or mixed":                       {"set", "--group", "a", "--mig", "1g.10gb", "--strategy", "both"},
		"not for --mig":                         {"set", "--group", "a", "--mig", "1g.10gb", "--rename"},
		"is for --mig":                          {"set", "--group", "a", "--mps", "4", "--strategy", "mixed"},
		"there is no group":                     {"clear", "--group", "a"},
	} {
		got := runWith(t, &fakeEngine{}, "", append([]string{"gpu", "share"}, args...)...)
		if got.code != 2 || !strings.Contains(got.err, want) {
			t.Errorf("%v: exit code %d, %q; want 2 and %q", args, got.code, got.err, want)
		}
	}
}

func TestShareWritesTheFileAndChangesNothingElse(t *testing.T) {
	file := filepath.Join(t.TempDir(), "gpuctl.yaml")
	text := strings.Replace(twoMachines, "spec:\n", "spec:\n  groups: [{name: a}]\n", 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f := &fakeEngine{apply: func(_ context.Context, o bootstrap.ApplyOptions) (bootstrap.ApplyResult, error) {
		if !o.SharingOnly {
			t.Error("it would change more than the sharing")
		}
		return bootstrap.ApplyResult{}, nil
	}}
	got := runWith(t, f, "", "-f", file, "gpu", "share", "set", "--group", "a", "--time-slicing", "4", "--rename")
	if got.code != 0 || f.deps.Config.Group("a").Spec().Key() != "gpuctl-time-slicing-4-renamed" {
		t.Errorf("exit code %d: %s\n%+v", got.code, got.err, f.deps.Config.Spec.Groups)
	}
	if got := runWith(t, f, "", "-f", file, "gpu", "share", "set", "--group", "a", "--mig", "4g.40gb:1 1g.10gb:3"); got.code != 0 ||
		f.deps.Config.Group("a").Spec().Key() != "gpuctl-mig-mixed-1g.10gb.x3_4g.40gb.x1" {
		t.Errorf("exit code %d: %s\n%+v", got.code, got.err, f.deps.Config.Spec.Groups)
	}
	if got := runWith(t, f, "", "-f", file, "gpu", "share", "set", "--group", "a", "--time-slicing", "4", "--rename"); got.code != 0 {
		t.Errorf("back again: %s", got.err)
	}
	data, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(data), "{name: a, sharing: {timeSlicing: {replicas: 4, renameByDefault: true}}}") {
		t.Errorf("%v:\n%s", err, data)
	}
}

func TestShareShow(t *testing.T) {
	f := &fakeEngine{status: func(context.Context) (bootstrap.StatusResult, error) {
		return bootstrap.StatusResult{Nodes: []bootstrap.NodeView{
			{Name: "gpu-1", GPUs: 1, Allocatable: 4, InUse: 2, Sharing: "time-slicing, 4 pods for each GPU", Resource: "nvidia.com/gpu", Replicas: 4},
			{Name: "gpu-2", GPUs: 2, Allocatable: 2}, {Name: "cpu"},
		}}, nil
	}}
	golden(t, "gpu-share.txt", runWith(t, f, "", "gpu", "share", "show").out)
}
