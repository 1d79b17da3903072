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

var (
	//go:embed reboot_load.sh
	loadScript string
	//go:embed reboot_start.sh
	rebootScript string
	//go:embed reboot_settled.sh
	settledScript string
)

const (
	// bootLimit is how long a machine may take to come back: large bare-metal
	// machines test their memory first.
	bootLimit = 15 * time.Minute
	// bootLook is the time between two looks for it.
	bootLook = 2 * time.Second
	// codeNotLoaded is the exit code of loadScript for a driver that wants a reboot.
	codeNotLoaded = 66
)

// rebootAction makes the installed driver the one that runs: by loading it
// where that may do, else by a reboot.
func rebootAction(want Want, c course, on remote.Runner) plan.Action {
	title, changes := "reboot the machine", []string{"systemctl reboot, then waiting for another boot id"}
	if c.loadable {
		title = "load the driver, reboot if it does not load without"
		changes = append([]string{"modprobe nvidia"}, changes...)
	}
	a := plan.Action{
		ID: RebootID(want.Machine), Machine: want.Machine, Title: title, Reason: c.boot, Changes: changes,
		Needs: []string{DriverID(want.Machine)}, Barrier: true, Consent: plan.ConsentReboot, Timeout: 20 * time.Minute,
		Apply: func(ctx context.Context, say plan.Say) error {
			if c.loadable {
				why, err := load(ctx, on, say)
				if why == "" || err != nil {
					return err
				}
				if want.Driver.NoReboot {
					return fmt.Errorf("the driver does not load without a reboot, and driver.reboot is never: %s", why)
				}
				say("the driver does not load without a reboot: %s", why)
			}
			return reboot(ctx, on, say)
		},
	}
	if want.Driver.NoReboot {
		a.Title, a.Changes, a.Consent = "load the driver", []string{"modprobe nvidia"}, ""
	}
	return a
}

// load loads the driver; the first result says why that needs a reboot.
func load(ctx context.Context, on remote.Runner, say plan.Say) (string, error) {
	say("loading the driver")
	_, err := on.Run(ctx, remote.Cmd{Name: "load driver", Script: loadScript, Sudo: true, Timeout: 4 * time.Minute})
	var exit *remote.ExitError
	if errors.As(err, &exit) && exit.Code == codeNotLoaded {
		return strings.TrimSpace(string(exit.Stderr)), nil
	}
	if err != nil {
		return "", fmt.Errorf("loading the driver: %w", err)
	}
	return "", nil
}

// reboot reboots a machine and waits until it is back: until it answers with
// another boot id.
func reboot(ctx context.Context, on remote.Runner, say plan.Say) error {
	say("rebooting")
	res, err := on.Run(ctx, remote.Cmd{Name: "reboot", Script: rebootScript, Sudo: true})
	if err != nil {
		return fmt.Errorf("rebooting: %w", err)
	}
	before := strings.TrimSpace(string(res.Stdout))
	if err := waitForBoot(ctx, on, before, say); err != nil {
		return fmt.Errorf("waiting for the machine after its reboot: %w", err)
	}
	if _, err := on.Run(ctx, remote.Cmd{Name: "wait for services", Script: settledScript, Sudo: true, Timeout: 4 * time.Minute}); err != nil {
		return fmt.Errorf("waiting for the services of the boot: %w", err)
	}
	return nil
}

// waitForBoot asks for the boot id until it is another one. Only a changed host
// key cannot heal: a machine that boots refuses, drops and even denies logins.
func waitForBoot(ctx context.Context, on remote.Runner, before string, say plan.Say) error {
	ctx, cancel := context.WithTimeout(ctx, bootLimit)
	defer cancel()
	for why := "it has not gone down yet"; ; {
		say("waiting for the machine to come back: %s", why)
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", why, ctx.Err())
		case <-time.After(bootLook):
		}
		res, err := on.Run(ctx, remote.Cmd{Name: "read boot id", Script: "cat /proc/sys/kernel/random/boot_id\n", Timeout: 20 * time.Second})
		now := strings.TrimSpace(string(res.Stdout))
		var connect *remote.ConnectError
		switch {
		case err == nil && now != before && now != "":
			return nil
		case errors.As(err, &connect) && connect.Kind == remote.HostKey:
			return err
		case err != nil && ctx.Err() == nil:
			why = firstLine(err.Error())
		}
	}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
