package nvidia

import (
	"context"
	_ "embed"
	"fmt"
	"path"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/bootstrap/remote"
)

//go:embed runtime.sh
var runtimeScript string

// runtimeAction restarts a k3s that started before the toolkit was there: k3s
// looks for runtimes only at its start (k3s pkg/agent/containerd/runtimes.go).
// On a machine where k3s does not run yet there is nothing to do.
func runtimeAction(want Want, seen host.Facts, coming bool, on remote.Runner) (plan.Action, bool) {
	unit := runningUnit(seen)
	config := seen.K3s.Value.Containerd
	if unit == "" || config.Schema == 0 {
		return plan.Action{}, false
	}
	t := seen.Toolkit.Value
	have := config.Runtimes["nvidia"]
	var reason string
	switch {
	case have == "" && (coming || t.Runtime != ""):
		reason = "containerd runs without the nvidia runtime"
	case !coming && t.Runtime != "" && have != "" && have != t.Runtime:
		reason = "containerd runs " + have + ", k3s would now find " + t.Runtime
	default:
		return plan.Action{}, false
	}
	dataDir := want.DataDir
	if dataDir == "" {
		dataDir = host.DefaultDataDir
	}
	file := path.Join(dataDir, "agent/etc/containerd/config.toml")
	return plan.Action{
		ID:      want.Machine + "/runtime",
		Machine: want.Machine,
		Title:   "restart " + unit + " so that containerd knows the nvidia runtime",
		Reason:  reason,
		Changes: []string{"systemctl restart " + unit + " (pods keep running)"},
		Needs:   []string{want.Machine + "/toolkit", want.Machine + "/k3s"},
		Timeout: 10 * time.Minute,
		Apply: func(ctx context.Context, say plan.Say) error {
			say("restarting %s", unit)
			_, err := on.Run(ctx, remote.Cmd{
				Name: "restart " + unit, Script: runtimeScript, Args: []string{unit, file}, Sudo: true, Timeout: 8 * time.Minute,
			})
			if err != nil {
				return fmt.Errorf("making the nvidia runtime known to containerd: %w", err)
			}
			return nil
		},
	}, true
}

func runningUnit(seen host.Facts) string {
	for _, u := range []string{"k3s", "k3s-agent"} {
		if seen.K3s.Value.Units[u].Active == "active" {
			return u
		}
	}
	return ""
}
