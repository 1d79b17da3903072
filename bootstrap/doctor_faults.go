package bootstrap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/internal/diag"
)

// FaultAnnotation is where a node that was cordoned for its GPUs says why.
const FaultAnnotation = "gpuctl.dev/gpu-fault"

// logLines bounds what a report quotes of a kernel log.
const logLines = 40

// gpuFaults are findings of hardware that no pod should meet.
func gpuFaults() []diag.Code {
	return []diag.Code{
		"gpu-lost", "gpu-count-differs", "gpu-needs-reset", "gpu-xid", "gpu-ecc-uncorrected", "gpu-remap-failed", "gpu-nvlink-error",
		"gpu-gsp-timeout", "gpu-recovery-needed", "gpu-unhealthy", "gpu-fewer", "fabric-manager-down", "fabric-manager-version",
		"fabric-not-ready", "inforom-corrupt", "gpu-lost-blocks-all",
	}
}

// faults are the findings that speak of broken GPUs, by machine.
func faults(found []diag.Finding) map[string][]diag.Finding {
	out := map[string][]diag.Finding{}
	for _, f := range found {
		if f.Machine != "" && f.Severity != diag.Informs && slices.Contains(gpuFaults(), f.Code) {
			out[f.Machine] = append(out[f.Machine], f)
		}
	}
	return out
}

// Faults are the findings of a result that speak of broken GPUs, by machine.
func (r DoctorResult) Faults() map[string][]diag.Finding { return faults(r.Findings) }

// FaultReport is what a provider needs to know to replace a machine or a GPU.
type FaultReport struct {
	Machine string `json:"machine"`
	Host    string `json:"host"`
	// Product is what the board calls itself.
	Product string `json:"product,omitempty"`
	OS      string `json:"os,omitempty"`
	Kernel  string `json:"kernel,omitempty"`
	Driver  string `json:"driver,omitempty"`
	// Seen is when the machine was looked at; Booted when it started, zero where
	// it did not say.
	Seen   time.Time      `json:"seen"`
	Booted time.Time      `json:"booted,omitzero"`
	GPUs   []host.GPU     `json:"gpus"`
	Faults []diag.Finding `json:"faults"`
	// Log are the driver's lines in the kernel log, with the times at which they
	// were written where the log has them.
	Log []string `json:"log"`
}

// reports makes one for each machine with broken GPUs, by name.
func (e *Engine) reports(r DoctorResult, now time.Time) []FaultReport {
	var out []FaultReport
	all := r.Faults()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		f := r.seen.sight.facts[name]
		rep := FaultReport{
			Machine: name, Seen: now.UTC().Truncate(time.Second), GPUs: f.SMI.Value.GPUs, Faults: all[name], OS: f.OS.Value.PrettyName,
			Kernel: f.System.Value.Kernel, Driver: f.Driver.Value.LoadedVersion,
			Product: strings.TrimSpace(f.System.Value.Vendor + " " + f.System.Value.Product),
		}
		if m, ok := e.settings.Inventory.Find(name); ok {
			rep.Host = m.Host
		}
		if rep.GPUs == nil {
			rep.GPUs = []host.GPU{}
		}
		if up := f.System.Value.UptimeSeconds; up > 0 {
			rep.Booted = rep.Seen.Add(-time.Duration(up) * time.Second)
		}
		rep.Log = kernelLines(f.KernelLog.Value, rep.Booted)
		out = append(out, rep)
	}
	return out
}

// kernelLines are the newest lines of the driver, with the time where it is known.
func kernelLines(log []host.KernelMsg, booted time.Time) []string {
	out := []string{}
	for _, m := range log[max(0, len(log)-logLines):] {
		line := m.Text
		if m.Uptime > 0 && !booted.IsZero() {
			line = booted.Add(time.Duration(m.Uptime*float64(time.Second))).Format(time.RFC3339) + " " + line
		}
		out = append(out, line)
	}
	return out
}

// cordonFaulty closes nodes with broken GPUs to new pods; running ones stay. The
// evidence is left on the node.
func (e *Engine) cordonFaulty(ctx context.Context, r DoctorResult) ([]string, error) {
	client, err := e.wayIn(ctx, r.seen.sight)
	if err != nil {
		return nil, err
	}
	done := []string{}
	var errs []error
	all := r.Faults()
	for _, n := range r.Nodes {
		if len(all[n.Name]) == 0 {
			continue
		}
		evidence, err := json.Marshal(map[string]any{"time": time.Now().UTC().Format(time.RFC3339), "findings": all[n.Name], "log": logOf(r.Reports, n.Name)})
		if err == nil {
			err = client.Cordon(ctx, n.Name, true)
		}
		if err == nil {
			err = client.SetAnnotations(ctx, n.Name, map[string]string{FaultAnnotation: string(evidence)})
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("cordoning %s: %w", n.Name, err))
			continue
		}
		done = append(done, n.Name)
	}
	return done, errors.Join(errs...)
}

// logOf is the end of a machine's log that an annotation has room for.
func logOf(reports []FaultReport, machine string) []string {
	for _, r := range reports {
		if r.Machine == machine {
			return r.Log[max(0, len(r.Log)-10):]
		}
	}
	return nil
}
