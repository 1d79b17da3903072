package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap"
	"github.com/gpuctl/gpuctl/internal/ui"
)

// fakeEngine answers what a test sets; a call that was not expected fails.
type fakeEngine struct {
	t          *testing.T
	deps       engineDeps
	check      func(context.Context, bootstrap.CheckOptions) (bootstrap.CheckResult, error)
	doctor     func(context.Context, bootstrap.DoctorOptions) (bootstrap.DoctorResult, error)
	plan       func(context.Context) (bootstrap.PlanResult, error)
	apply      func(context.Context, bootstrap.ApplyOptions) (bootstrap.ApplyResult, error)
	smoke      func(context.Context, bootstrap.SmokeOptions) (bootstrap.SmokeResult, error)
	status     func(context.Context) (bootstrap.StatusResult, error)
	kubeconfig func(context.Context) ([]byte, error)
	reset      func(context.Context, bootstrap.ResetOptions) (bootstrap.ApplyResult, error)
	ssh        func(context.Context, string, []string, bootstrap.Stdio) (int, error)
	closed     bool
	gpus       func(context.Context) (bootstrap.GPUsResult, error)
	fakeNodes
	fakeEtcd
	trust func(context.Context) (bootstrap.TrustResult, error)
	cost  func(context.Context, time.Time) (bootstrap.CostResult, error)
}

func (f *fakeEngine) unexpected(what string) error {
	f.t.Helper()
	f.t.Errorf("unexpected call of %s", what)
	return errors.New("unexpected call of " + what)
}

func (f *fakeEngine) Check(ctx context.Context, o bootstrap.CheckOptions) (bootstrap.CheckResult, error) {
	if f.check == nil {
		return bootstrap.CheckResult{}, f.unexpected("Check")
	}
	return f.check(ctx, o)
}

func (f *fakeEngine) Doctor(ctx context.Context, o bootstrap.DoctorOptions) (bootstrap.DoctorResult, error) {
	if f.doctor == nil {
		return bootstrap.DoctorResult{}, f.unexpected("Doctor")
	}
	return f.doctor(ctx, o)
}

func (f *fakeEngine) Bundle(w io.Writer, _ bootstrap.DoctorResult) error {
	_, err := io.WriteString(w, "bundle")
	return err
}

func (f *fakeEngine) Plan(ctx context.Context) (bootstrap.PlanResult, error) {
	if f.plan == nil {
		return bootstrap.PlanResult{}, f.unexpected("Plan")
	}
	return f.plan(ctx)
}

func (f *fakeEngine) Apply(ctx context.Context, o bootstrap.ApplyOptions) (bootstrap.ApplyResult, error) {
	if f.apply == nil {
		return bootstrap.ApplyResult{}, f.unexpected("Apply")
	}
	return f.apply(ctx, o)
}

func (f *fakeEngine) Smoke(ctx context.Context, o bootstrap.SmokeOptions) (bootstrap.SmokeResult, error) {
	if f.smoke == nil {
		return bootstrap.SmokeResult{}, f.unexpected("Smoke")
	}
	return f.smoke(ctx, o)
}

func (f *fakeEngine) Status(ctx context.Context) (bootstrap.StatusResult, error) {
	if f.status == nil {
		return bootstrap.StatusResult{}, f.unexpected("Status")
	}
	return f.status(ctx)
}

func (f *fakeEngine) Kubeconfig(ctx context.Context) ([]byte, error) {
	if f.kubeconfig == nil {
		return nil, f.unexpected("Kubeconfig")
	}
	return f.kubeconfig(ctx)
}

func (f *fakeEngine) Reset(ctx context.Context, o bootstrap.ResetOptions) (bootstrap.ApplyResult, error) {
	if f.reset == nil {
		return bootstrap.ApplyResult{}, f.unexpected("Reset")
	}
	return f.reset(ctx, o)
}

func (f *fakeEngine) SSH(ctx context.Context, m string, c []string, s bootstrap.Stdio) (int, error) {
	if f.ssh == nil {
		return 0, f.unexpected("SSH")
	}
	return f.ssh(ctx, m, c, s)
}

func (f *fakeEngine) Trust(ctx context.Context) (bootstrap.TrustResult, error) {
	if f.trust == nil {
		return bootstrap.TrustResult{}, f.unexpected("Trust")
	}
	return f.trust(ctx)
}

func (f *fakeEngine) Cost(ctx context.Context, now time.Time) (bootstrap.CostResult, error) {
	if f.cost == nil {
		return bootstrap.CostResult{}, f.unexpected("Cost")
	}
	return f.cost(ctx, now)
}

func (f *fakeEngine) Close() error {
	f.closed = true
	return nil
}

// outcome is what one command line came to.
type outcome struct {
	code     int
	out, err string
	dir      string
}

const twoMachines = `apiVersion: gpuctl.dev/v1alpha1
kind: Cluster
metadata: {name: lab}
spec:
  machines:
    - {name: gpu-1, role: server, host: 203.0.113.10}
    - {name: gpu-2, host: 203.0.113.11}
`

// runWith runs a command line in a directory with gpuctl.yaml, against a fake.
func runWith(t *testing.T, f *fakeEngine, stdin string, args ...string) outcome {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "gpuctl.yaml")
	if err := os.WriteFile(file, []byte(twoMachines), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	f.t = t
	var out, errOut bytes.Buffer
	code := run(append([]string{"-f", file}, args...), app{
		in: strings.NewReader(stdin), out: &out, err: &errOut,
		terminal:     terminals{in: stdin != ""},
		size:         func() ui.Size { return ui.Size{Width: 80, Height: 24} },
		readPassword: func(string) (string, error) { return "", errors.New("no terminal") },
		newEngine: func(d engineDeps) (Engine, error) {
			f.deps = d
			return f, nil
		},
	})
	if f.deps.Sink != nil && !f.closed {
		t.Error("the engine was not closed")
	}
	return outcome{code, strings.ReplaceAll(out.String(), dir, "DIR"), strings.ReplaceAll(errOut.String(), dir, "DIR"), dir}
}
