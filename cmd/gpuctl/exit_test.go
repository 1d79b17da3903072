package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/internal/config"
	"github.com/gpuctl/gpuctl/internal/state"
)

func TestExitCodePrecedence(t *testing.T) {
	action := &plan.ActionError{Err: errors.New("x")}
	smoke := &bootstrap.SmokeError{}
	blocked := &bootstrap.BlockedError{}
	connect := &remote.ConnectError{Err: errors.New("x")}
	usage := usagef("x")
	locked := &state.LockedError{}
	steps := []struct {
		err  error
		code int
	}{
		{errors.New("x"), exitUnexpected}, {smoke, exitSmoke}, {action, exitAction}, {blocked, exitFindings},
		{connect, exitUnreachable}, {usage, exitUsage}, {locked, exitLocked}, {errInterrupted, exitCancelled},
	}
	var all error
	for _, s := range steps {
		all = errors.Join(all, s.err)
		if got := exitCode(fmt.Errorf("doing: %w", s.err)); got != s.code {
			t.Errorf("%T alone is %d, want %d", s.err, got, s.code)
		}
		if got := exitCode(all); got != s.code {
			t.Errorf("with all before, %T is %d, want %d", s.err, got, s.code)
		}
	}
	for err, want := range map[error]int{
		nil: exitOK, &remoteExit{42}: 42, &remote.SudoError{}: exitUnreachable, &config.InvalidError{}: exitUsage,
		&bootstrap.HeldError{}:  exitLocked,
		config.ErrConfigDiffers: exitUsage, plan.ErrConsent: exitFindings,
	} {
		if got := exitCode(err); got != want {
			t.Errorf("%T is %d, want %d", err, got, want)
		}
	}
}

func TestSSHPassesTheExitCodeOn(t *testing.T) {
	f := &fakeEngine{ssh: func(_ context.Context, machine string, command []string, _ bootstrap.Stdio) (int, error) {
		if machine != "gpu-2" || strings.Join(command, " ") != "nvidia-smi -L" {
			t.Errorf("%s: %v", machine, command)
		}
		return 42, nil
	}}
	if got := runWith(t, f, "", "ssh", "gpu-2", "--", "nvidia-smi", "-L"); got.code != 42 || got.err != "" {
		t.Errorf("%d %q", got.code, got.err)
	}
	if got := runWith(t, &fakeEngine{}, "", "ssh", "gpu-9"); got.code != exitUsage {
		t.Errorf("an unknown machine is exit code %d", got.code)
	}
}

func TestTimeoutIsTheReason(t *testing.T) {
	f := &fakeEngine{check: func(ctx context.Context, _ bootstrap.CheckOptions) (bootstrap.CheckResult, error) {
		<-ctx.Done()
		return bootstrap.CheckResult{}, context.Cause(ctx)
	}}
	got := runWith(t, f, "", "check", "--timeout", "1ms")
	if got.code != exitUnexpected || !strings.Contains(got.err, "the limit --timeout 1ms passed") {
		t.Errorf("%d %s", got.code, got.err)
	}
}
