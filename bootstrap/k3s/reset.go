package k3s

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/bootstrap/remote"
)

// ResetOptions choose how much of k3s goes.
type ResetOptions struct {
	// KeepPassword leaves /etc/rancher/node, so that the machine can join again
	// under its name while its Node object is still there.
	KeepPassword bool
}

// ResetID is the ID of the action that takes k3s off a machine.
func ResetID(machine string) string { return machine + "/k3s-reset" }

// ResetPlan takes k3s off a machine: an official uninstall script is used
// where one is, and the rest is removed whatever state it is in. There is
// nothing to do where no trace of it was seen.
func ResetPlan(w Want, s Seen, o ResetOptions, on remote.Runner, needs ...string) []plan.Action {
	var traces []string
	for _, unit := range sortedKeys(s.Units) {
		traces = append(traces, unit+".service")
	}
	if s.Version != "" {
		traces = append(traces, "k3s "+s.Version)
	}
	for _, path := range sortedKeys(s.Files) {
		if o.KeepPassword && strings.HasPrefix(path, "/etc/rancher/node/") {
			continue
		}
		if strings.HasPrefix(path, "/etc/rancher/") || strings.Contains(path, "k3s") || strings.HasPrefix(path, w.Data()+"/") {
			traces = append(traces, path)
		}
	}
	if s.Unseen != "" {
		traces = append(traces, "not known: "+s.Unseen)
	}
	if len(traces) == 0 || !safeDataDir(w.Data()) {
		return nil
	}
	changes := []string{
		"stop k3s and all its containers on this machine",
		"delete " + w.Data() + ", /var/lib/kubelet, /var/lib/cni, /etc/rancher/k3s, units, " + Binary,
		"delete tokens and certificates, " + host.PathModules + ", " + host.PathSysctl,
		"remove interfaces cni0 and flannel*, and packet filter rules of Kubernetes",
	}
	for _, script := range []string{"k3s-uninstall.sh", "k3s-agent-uninstall.sh"} {
		if _, there := s.Files[BinDir+"/"+script]; there {
			changes = append([]string{"run " + BinDir + "/" + script + ", then remove what it leaves"}, changes...)
		}
	}
	if !o.KeepPassword {
		changes = append(changes, "delete /etc/rancher/node")
	}
	return []plan.Action{{
		ID: ResetID(w.Machine), Machine: w.Machine, Title: "uninstall k3s", Needs: needs,
		Reason: "found " + strings.Join(traces, ", "), Changes: changes,
		Consent: plan.ConsentUninstall, Timeout: 10 * time.Minute,
		Apply: func(ctx context.Context, say plan.Say) error { return reset(ctx, w, o, on, say) },
	}}
}

// LeftError says what a reset could not remove.
type LeftError struct{ Left []string }

func (e *LeftError) Error() string {
	return "uninstalling k3s: still there: " + strings.Join(e.Left, ", ")
}

func reset(ctx context.Context, w Want, o ResetOptions, on remote.Runner, say plan.Say) error {
	password := "remove"
	if o.KeepPassword {
		password = "keep"
	}
	say("stopping k3s and removing its data")
	res, err := on.Run(ctx, remote.Cmd{
		Name: "uninstall k3s", Script: resetScript, Args: []string{w.Data(), password}, Sudo: true, Timeout: 9 * time.Minute,
		Env: map[string]string{"KILLALL": killallScript(w), "UNINSTALL": uninstallScript(w)},
	})
	if remote.ExitCode(err) != 61 {
		if err != nil {
			return fmt.Errorf("uninstalling k3s: %w", err)
		}
		return nil
	}
	var left []string
	for _, line := range strings.Split(string(res.Stdout), "\n") {
		if what, ok := strings.CutPrefix(line, "left "); ok {
			left = append(left, what)
		}
	}
	return &LeftError{Left: left}
}
