package bootstrap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/k3s"
	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/inventory"
)

// journalScript prints the newest lines of k3s's log, whichever unit writes it.
const journalScript = `command -v journalctl >/dev/null 2>&1 || exit 0
journalctl -q --no-pager -o cat -u k3s -u k3s-agent -n 200 2>/dev/null | cut -c1-1000`

func readJournal(ctx context.Context, on remote.Runner) ([]string, error) {
	res, err := on.Run(ctx, remote.Cmd{Name: "read the log of k3s", Script: journalScript, Sudo: true, Timeout: 20 * time.Second})
	if err != nil {
		return nil, err
	}
	text := strings.TrimSpace(string(res.Stdout))
	if text == "" {
		return nil, nil
	}
	return strings.Split(text, "\n"), nil
}

// k3sTrouble explains k3s that does not run where it is installed, by the last
// line of its log that an entry of the catalogue knows.
func k3sTrouble(machines []inventory.Machine, p patient) []diag.Finding {
	var out []diag.Finding
	for _, m := range machines {
		for _, unit := range []string{"k3s", "k3s-agent"} {
			state, there := p.sight.facts[m.Name].K3s.Value.Units[unit]
			if !there || state.Active == "active" && state.Sub == "running" {
				continue
			}
			code, reason := k3s.Classify(p.journals[m.Name])
			if code == "" {
				code = "k3s-crash-loop"
			}
			evidence := fmt.Sprintf("%s.service is %s (%s), started %d times again", unit, state.Active, state.Sub, state.Restarts)
			if reason != "" {
				evidence += ": " + reason
			}
			out = append(out, diag.Found(code, m.Name, evidence))
		}
	}
	return out
}

// halves says which way of looking is dead, and why.
func halves(machines []inventory.Machine, s sight, api error) []Half {
	ssh := Half{Name: "ssh", State: "whole"}
	for _, m := range machines {
		if err := s.unreached[m.Name]; err != nil {
			ssh.Why, ssh.State = append(ssh.Why, m.Name+": "+err.Error()), "partial"
		}
	}
	if len(ssh.Why) == len(machines) {
		ssh.State = "dead"
	}
	second := Half{Name: "api", State: "whole"}
	if api != nil {
		second.State, second.Why = "dead", []string{api.Error()}
	}
	return []Half{ssh, second}
}

// FaultAnnotation is where a node that was cordoned for its GPUs says why.
const FaultAnnotation = "gpuctl.dev/gpu-fault"

// gpuFaults are findings of hardware that no pod should meet.
func gpuFaults() []diag.Code {
	return []diag.Code{
		"gpu-lost", "gpu-count-differs", "gpu-needs-reset", "gpu-xid", "gpu-ecc-uncorrected", "gpu-remap-failed", "gpu-nvlink-error",
		"gpu-gsp-timeout", "gpu-recovery-needed", "gpu-unhealthy", "gpu-fewer", "fabric-manager-down", "fabric-manager-version",
		"fabric-not-ready", "inforom-corrupt", "gpu-lost-blocks-all",
	}
}

// Faults are the findings of a result that speak of broken GPUs, by machine.
func (r DoctorResult) Faults() map[string][]diag.Finding {
	out := map[string][]diag.Finding{}
	for _, f := range r.Findings {
		if f.Machine != "" && f.Severity != diag.Informs && slices.Contains(gpuFaults(), f.Code) {
			out[f.Machine] = append(out[f.Machine], f)
		}
	}
	return out
}

// cordonFaulty closes nodes with broken GPUs to new pods; running ones stay.
func (e *Engine) cordonFaulty(ctx context.Context, r DoctorResult) ([]string, error) {
	client, _, err := e.api.connect(ctx)
	if err != nil {
		return nil, err
	}
	var done []string
	var errs []error
	faults := r.Faults()
	for _, n := range r.Nodes {
		if len(faults[n.Name]) == 0 {
			continue
		}
		evidence, err := json.Marshal(map[string]any{"time": time.Now().UTC().Format(time.RFC3339), "findings": faults[n.Name]})
		if err == nil {
			err = client.Cordon(ctx, n.Name, true)
		}
		if err == nil {
			err = client.SetAnnotations(ctx, n.Name, map[string]string{FaultAnnotation: string(evidence)})
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		done = append(done, n.Name)
	}
	return done, errors.Join(errs...)
}
