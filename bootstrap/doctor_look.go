package bootstrap

import (
	"context"
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
			switch {
			case state.Active == "inactive" || state.Active == "deactivating":
				code, reason = "k3s-stopped", "" // its log is about other days
			case code == "":
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
	switch {
	case len(machines) == 0:
		ssh.State = "unused" // no machine is named: the API is all there is
	case len(ssh.Why) == len(machines):
		ssh.State = "dead"
	}
	second := Half{Name: "api", State: "whole"}
	if api != nil {
		second.State, second.Why = "dead", []string{api.Error()}
	}
	return []Half{ssh, second}
}

// secondEngines are the machines on which an engine runs beside the cluster's.
func secondEngines(s sight) []string {
	var out []string
	for name, facts := range s.facts {
		if secondEngine(facts) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
