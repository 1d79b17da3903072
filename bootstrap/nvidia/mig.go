package nvidia

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/bootstrap/remote"
)

//go:embed mig_mode.sh
var migModeScript string

// ErrMIGPending says that the mode waits for a reset that the GPU does not get without a
// reboot, and the machine must not be rebooted.
var ErrMIGPending = errors.New("the MIG mode waits for a reboot, and driver.reboot is never")

// SetMIGMode turns MIG on or off on all GPUs of a machine that have it, and
// reboots the machine where the mode stays pending: a passed-through GPU often
// cannot be reset otherwise (NVIDIA/gpu-operator#1606). Instances are not its
// business. ErrMIGPending where a reboot is needed and not allowed.
func SetMIGMode(ctx context.Context, on remote.Runner, enable, mayReboot bool, say plan.Say) error {
	waiting, err := migMode(ctx, on, enable, say)
	if err != nil || len(waiting) == 0 {
		return err
	}
	if !mayReboot {
		return fmt.Errorf("%w: %s", ErrMIGPending, strings.Join(waiting, "; "))
	}
	say("the MIG mode is pending: %s", strings.Join(waiting, "; "))
	if err := reboot(ctx, on, say); err != nil {
		return err
	}
	if waiting, err = migMode(ctx, on, enable, say); err != nil {
		return err
	}
	if len(waiting) > 0 {
		return fmt.Errorf("setting the MIG mode: still pending after a reboot: %s", strings.Join(waiting, "; "))
	}
	return nil
}

// migMode sets the mode and says which GPUs do not have it yet.
func migMode(ctx context.Context, on remote.Runner, enable bool, say plan.Say) ([]string, error) {
	arg, want := "0", "Disabled"
	if enable {
		arg, want = "1", "Enabled"
	}
	say("setting the MIG mode: %s", strings.ToLower(want))
	res, err := on.Run(ctx, remote.Cmd{Name: "set MIG mode", Script: migModeScript, Args: []string{arg}, Sudo: true, Timeout: 2 * time.Minute})
	if err != nil {
		return nil, fmt.Errorf("setting the MIG mode: %w", err)
	}
	return migWaiting(string(res.Stdout), want)
}

// migWaiting reads "index, current, pending" lines.
func migWaiting(text, want string) ([]string, error) {
	var waiting []string
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSpace(line), ", ")
		if len(f) != 3 || strings.Contains(f[1], "N/A") {
			continue
		}
		switch {
		case f[1] == want && f[2] == want:
		case f[2] == want:
			waiting = append(waiting, fmt.Sprintf("GPU %s is %s, pending %s", f[0], strings.ToLower(f[1]), strings.ToLower(f[2])))
		default:
			return nil, fmt.Errorf("setting the MIG mode: GPU %s stays %s", f[0], strings.ToLower(f[2]))
		}
	}
	return waiting, nil
}
