package bootstrap

import (
	"fmt"
	"strings"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/bootstrap/nvidia"
	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/inventory"
)

func (e *Engine) checkResult(s sight, b book) CheckResult {
	r := CheckResult{Cluster: e.settings.Inventory.Cluster, Machines: []MachineView{}, Findings: b.findings, Pairs: s.pairs}
	if r.Findings == nil {
		r.Findings = []diag.Finding{}
	}
	for _, m := range e.want.machines {
		r.Machines = append(r.Machines, machineView(m, s, b))
	}
	return r
}

func (e *Engine) planResult(s sight, b book) PlanResult {
	return PlanResult{CheckResult: e.checkResult(s, b), Set: e.want.set.Name, Untested: e.want.set.Untested, Actions: views(b.actions)}
}

func machineView(m inventory.Machine, s sight, b book) MachineView {
	v := MachineView{Name: m.Name, Role: string(m.Role), Host: m.Host, State: Reached, GPUs: []GPUView{}}
	f, seen := s.facts[m.Name]
	if !seen {
		v.State = Unreachable
		if err := s.unreached[m.Name]; err != nil {
			v.Error, v.Code = err.Error(), diag.CodeOf(err)
		}
		return v
	}
	if b.out[m.Name] {
		v.State = BlockedByFinding
	}
	v.OS, v.Kernel = f.OS.Value.PrettyName, f.System.Value.Kernel
	v.CPUs, v.MemoryMiB = f.Memory.Value.CPUs, f.Memory.Value.TotalMiB
	v.DiskFreeMiB = f.Disks.Value.Mounts["/var/lib"].FreeMiB
	v.Driver, v.K3s = f.Driver.Value.LoadedVersion, f.K3s.Value.Version
	v.GPUs = gpuViews(f)
	a := b.network.Addresses[m.Name]
	v.NodeIP, v.AddressReason = a.NodeIP, a.Reason
	return v
}

// gpuViews lists what the driver shows; without a driver, what the bus shows.
func gpuViews(f host.Facts) []GPUView {
	out := []GPUView{}
	for _, g := range f.SMI.Value.GPUs {
		out = append(out, GPUView{Index: g.Index, UUID: g.UUID, Model: g.Name, MemoryMiB: g.MemoryMiB})
	}
	if len(out) > 0 {
		return out
	}
	for i, d := range nvidia.GPUs(f) {
		out = append(out, GPUView{Index: i, Model: nvidia.Model(d)})
	}
	return out
}

// summary is a machine in one line.
func summary(f host.Facts) string {
	parts := []string{f.OS.Value.PrettyName}
	if parts[0] == "" {
		parts[0] = "unknown system"
	}
	if m := f.Memory.Value; m.CPUs > 0 {
		parts = append(parts, fmt.Sprintf("%d CPUs, %d GiB", m.CPUs, (m.TotalMiB+512)/1024))
	}
	parts = append(parts, gpuSummary(f))
	if v := f.K3s.Value.Version; v != "" {
		parts = append(parts, "k3s "+v)
	}
	return strings.Join(parts, " · ")
}

// gpuSummary counts GPUs by model: "8 × NVIDIA H100 80GB HBM3, driver 580.95.05".
func gpuSummary(f host.Facts) string {
	var models []string
	count := map[string]int{}
	for _, g := range gpuViews(f) {
		if count[g.Model] == 0 {
			models = append(models, g.Model)
		}
		count[g.Model]++
	}
	if len(models) == 0 {
		return "no GPU"
	}
	for i, m := range models {
		models[i] = fmt.Sprintf("%d × %s", count[m], m)
	}
	text := strings.Join(models, " + ")
	if v := f.Driver.Value.LoadedVersion; v != "" {
		return text + ", driver " + v
	}
	return text + ", no driver"
}
