package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/event"
	"github.com/gpuctl/gpuctl/internal/smoke"
	"github.com/gpuctl/gpuctl/internal/state"
)

var update = flag.Bool("update", false, "write what the tests see as what they expect")

// golden compares with testdata/<name>; run identifiers are masked.
func golden(t *testing.T, name, got string) {
	t.Helper()
	got = regexp.MustCompile(`\d{8}T\d{6}Z-[0-9a-f]{4}`).ReplaceAllString(got, "RUN")
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got:\n%s\nwant:\n%s", name, got, want)
	}
}

func sampleCheck() bootstrap.CheckResult {
	return bootstrap.CheckResult{
		Cluster: "lab",
		Machines: []bootstrap.MachineView{
			{Name: "gpu-1", Role: "server", Host: "203.0.113.10", State: bootstrap.Reached, OS: "Debian 12", Kernel: "6.1.0", CPUs: 16,
				MemoryMiB: 65536, DiskFreeMiB: 102400, Driver: "580.126.20", NodeIP: "10.0.0.5",
				GPUs: []bootstrap.GPUView{{Index: 0, UUID: "GPU-1", Model: "NVIDIA H100"}, {Index: 1, UUID: "GPU-2", Model: "NVIDIA H100"}}},
			{Name: "gpu-2", Role: "agent", Host: "203.0.113.11", State: bootstrap.Unreachable, Error: "connecting to 203.0.113.11:22: refused"},
		},
		Findings: []diag.Finding{{Code: "made-up", Machine: "gpu-1", Evidence: "seen \x1b[31mthis", Severity: diag.Warns}},
	}
}

func samplePlan() bootstrap.PlanResult {
	return bootstrap.PlanResult{CheckResult: sampleCheck(), Set: "26.7", Actions: []bootstrap.ActionView{
		{ID: "gpu-1/driver", Machine: "gpu-1", Title: "load driver 580.126.20", Reason: "nouveau holds the GPUs", Consent: "reboot"},
		{ID: "gpu-1/k3s", Machine: "gpu-1", Title: "install k3s v1.36.3+k3s1 (server)", Reason: "k3s is absent", Changes: []string{"/usr/local/bin/k3s 0755"},
			Chosen: []string{"node address 10.0.0.5 on eth0: the private address of the default route's interface", "pod network vxlan: a machine alone sends no pod traffic to others"}},
		{ID: "operator", Title: "install GPU Operator v25.10.1", Reason: "release is absent"},
	}}
}

func sampleNodes() []bootstrap.NodeView {
	at := time.Date(2026, 12, 1, 5, 0, 0, 0, time.UTC)
	return []bootstrap.NodeView{
		{Name: "gpu-1", Role: "server", Ready: true, Version: "v1.36.3+k3s1", Address: "10.0.0.5", GPUs: 2, Allocatable: 2, InUse: 1, Model: "NVIDIA H100", Proven: true, ProvenAt: &at},
		{Name: "old", Role: "agent", Why: "kubelet stopped", GPUs: 8, Unlisted: true},
	}
}

func TestCheckShowsMachinesAndFindings(t *testing.T) {
	unreachable := &remote.ConnectError{Host: "gpu-2", Kind: remote.Refused, Hint: "is sshd running?"}
	check := func(context.Context, bootstrap.CheckOptions) (bootstrap.CheckResult, error) {
		return sampleCheck(), unreachable
	}
	got := runWith(t, &fakeEngine{check: check}, "", "check")
	if got.code != exitUnreachable {
		t.Errorf("exit code %d", got.code)
	}
	golden(t, "check.txt", got.out+"---\n"+got.err)
	got = runWith(t, &fakeEngine{check: check}, "", "check", "-o", "json")
	golden(t, "check.json", got.out)
}

func TestCheckWithBlockingFindingIsExit3(t *testing.T) {
	r := sampleCheck()
	r.Findings[0].Severity = diag.Blocks
	got := runWith(t, &fakeEngine{check: func(context.Context, bootstrap.CheckOptions) (bootstrap.CheckResult, error) { return r, nil }}, "", "check")
	if got.code != exitFindings || !strings.Contains(got.err, "gpu-1: made-up") {
		t.Errorf("%d %s", got.code, got.err)
	}
}

func TestPlanListsActionsWithReasons(t *testing.T) {
	f := func() *fakeEngine {
		return &fakeEngine{plan: func(context.Context) (bootstrap.PlanResult, error) { return samplePlan(), nil }}
	}
	golden(t, "plan.txt", runWith(t, f(), "", "plan").out)
	golden(t, "plan-verbose.txt", runWith(t, f(), "", "plan", "-v").out)
	golden(t, "plan.json", runWith(t, f(), "", "plan", "-o", "json").out)
	empty := &fakeEngine{plan: func(context.Context) (bootstrap.PlanResult, error) {
		return bootstrap.PlanResult{CheckResult: bootstrap.CheckResult{Cluster: "lab"}, Set: "own.yaml", Untested: true}, nil
	}}
	if got := runWith(t, empty, "", "plan"); got.out != "lab is as gpuctl.yaml says (set own.yaml, untested): nothing to do.\n" {
		t.Errorf("got %q", got.out)
	}
}

func applied(fail error) *fakeEngine {
	f := &fakeEngine{}
	f.apply = func(ctx context.Context, o bootstrap.ApplyOptions) (bootstrap.ApplyResult, error) {
		r := bootstrap.ApplyResult{PlanResult: samplePlan(), Nodes: sampleNodes(), Changed: 3, Seconds: 372}
		f.deps.Sink.Emit(event.Event{Kind: event.ActionDone, Machine: "gpu-1", Action: "gpu-1/k3s", Text: "install k3s"})
		f.deps.Secret("tok-en")
		f.deps.Log.Info("joined", "with", "tok-en")
		if err := o.Confirm(ctx, r.PlanResult); err != nil {
			return bootstrap.ApplyResult{PlanResult: samplePlan()}, err
		}
		if fail != nil {
			r.Outcomes = []bootstrap.OutcomeView{{ActionView: r.Actions[1], Status: "failed", Error: fail.Error(), Code: "made-up"}}
		}
		return r, fail
	}
	return f
}

func TestApplyRecordsTheRun(t *testing.T) {
	got := runWith(t, applied(nil), "", "apply", "--yes")
	if got.code != 0 {
		t.Errorf("exit code %d: %s", got.code, got.err)
	}
	golden(t, "apply.txt", got.out+"---\n"+got.err)
	d, err := state.OpenAt(filepath.Join(got.dir, "state", "gpuctl", "lab"))
	if err != nil {
		t.Fatal(err)
	}
	latest, err := d.Latest()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"events.jsonl": `"kind":"action-done"`, "report.json": `"changed": 3`, "debug.log": "with=********"} {
		data, err := os.ReadFile(filepath.Join(latest, name))
		if err != nil || !strings.Contains(string(data), want) || strings.Contains(string(data), "tok-en") {
			t.Errorf("%s: %v: %s", name, err, data)
		}
	}
}

func TestApplyAsksForConsent(t *testing.T) {
	for stdin, want := range map[string]int{"y\n": exitOK, "n\n": exitFindings, "": exitFindings} {
		got := runWith(t, applied(nil), stdin, "apply")
		if got.code != want || !strings.Contains(got.err, "reboot     gpu-1: load driver 580.126.20 (nouveau holds the GPUs)") {
			t.Errorf("answer %q: exit code %d, want %d: %s", stdin, got.code, want, got.err)
		}
	}
}

func TestApplyThatFails(t *testing.T) {
	fail := &plan.ActionError{Action: plan.Action{Machine: "gpu-1", Title: "install k3s"}, Status: plan.Failed, Err: errors.New("no space left")}
	got := runWith(t, applied(fail), "", "apply", "--yes")
	if got.code != exitAction {
		t.Errorf("exit code %d", got.code)
	}
	golden(t, "apply-failed.txt", got.out+"---\n"+got.err)
}

func TestApplyIsLocked(t *testing.T) {
	f := applied(nil)
	apply := f.apply
	f.apply = func(ctx context.Context, o bootstrap.ApplyOptions) (bootstrap.ApplyResult, error) {
		if _, err := f.deps.State.Lock("gpuctl apply"); !is[*state.LockedError](err) {
			t.Errorf("while it runs another gets %v", err)
		}
		return apply(ctx, o)
	}
	if got := runWith(t, f, "", "apply", "--yes"); got.code != exitOK {
		t.Errorf("exit code %d: %s", got.code, got.err)
	}
}

func TestStatus(t *testing.T) {
	f := func() *fakeEngine {
		return &fakeEngine{status: func(context.Context) (bootstrap.StatusResult, error) {
			return bootstrap.StatusResult{Cluster: "lab", Nodes: sampleNodes(), Missing: []string{"gpu-2"}, Operator: "ready", RuntimePath: "cdi",
				PodLines: []string{"resources: {limits: {nvidia.com/gpu: 1}}"}}, nil
		}}
	}
	golden(t, "status.txt", runWith(t, f(), "", "status").out)
	golden(t, "status.json", runWith(t, f(), "", "status", "-o", "json").out)
}

func TestSmoke(t *testing.T) {
	f := &fakeEngine{}
	f.smoke = func(_ context.Context, o bootstrap.SmokeOptions) (bootstrap.SmokeResult, error) {
		if strings.Join(o.Nodes, " ") != "gpu-1" {
			t.Errorf("nodes %v", o.Nodes)
		}
		return bootstrap.SmokeResult{Cluster: "lab", Seconds: 31, Nodes: []bootstrap.SmokeNode{
			{Node: "gpu-1", Status: "failed", GPUs: 1, Code: "made-up", Steps: []bootstrap.SmokeStep{
				{Name: "counts", Status: "passed", Seconds: 0.2, Detail: "2 PCI, 2 devices, 2 allocatable"},
				{Name: "vectorAdd", Status: "failed", Seconds: 30, Detail: "GPU-2 was not given"}}},
		}, Reports: []smoke.Report{{Nodes: []smoke.NodeReport{
			{Node: "gpu-1", Status: smoke.Failed, Steps: []smoke.Step{{Name: smoke.StepCompute, Status: smoke.Failed}}},
		}}}}, &bootstrap.SmokeError{Nodes: []string{"gpu-1"}}
	}
	got := runWith(t, f, "", "smoke", "--nodes", "gpu-1")
	if got.code != exitSmoke {
		t.Errorf("exit code %d", got.code)
	}
	golden(t, "smoke.txt", got.out+"---\n"+got.err)
	xml := filepath.Join(t.TempDir(), "smoke.xml")
	if got = runWith(t, f, "", "smoke", "--nodes", "gpu-1", "--junit", xml); got.code != exitSmoke {
		t.Errorf("exit code %d", got.code)
	}
	if data, err := os.ReadFile(xml); err != nil || !strings.Contains(string(data), `<testsuite name="gpu-1" tests="1" failures="1"`) {
		t.Errorf("%v\n%s", err, data)
	}
	if got = runWith(t, f, "", "smoke", "--nodes", "gpu-1", "--junit", filepath.Join(xml, "no")); got.code != exitSmoke || !strings.Contains(got.err, "not a directory") {
		t.Errorf("a file that cannot be written: %d %s", got.code, got.err)
	}
}

func TestKubeconfigGoesToAPrivateFile(t *testing.T) {
	f := &fakeEngine{kubeconfig: func(context.Context) ([]byte, error) { return []byte("kind: Config\n"), nil }}
	to := filepath.Join(t.TempDir(), "kc")
	if got := runWith(t, f, "", "kubeconfig", "--to", to); got.code != 0 {
		t.Errorf("%d %s", got.code, got.err)
	}
	info, err := os.Stat(to)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
}

func TestReset(t *testing.T) {
	f := &fakeEngine{reset: func(ctx context.Context, o bootstrap.ResetOptions) (bootstrap.ApplyResult, error) {
		p := bootstrap.PlanResult{Actions: []bootstrap.ActionView{{Machine: "gpu-2", Title: "uninstall k3s", Reason: "reset", Consent: "uninstall"}}}
		if err := o.Confirm(ctx, p); err != nil || !o.Driver {
			t.Errorf("driver %v, %v", o.Driver, err)
		}
		return bootstrap.ApplyResult{PlanResult: bootstrap.PlanResult{CheckResult: sampleCheck()}, Changed: 1}, nil
	}}
	got := runWith(t, f, "yes\n", "reset", "--driver")
	if got.code != 0 || !strings.Contains(got.out, "lab: 1 change in 0.0s") || !strings.Contains(got.out, "Next: gpuctl apply -f") || !strings.Contains(got.err, "uninstall  gpu-2: uninstall k3s") {
		t.Errorf("%d\n%s\n%s", got.code, got.out, got.err)
	}
}

func TestUnknownNodeIsUsage(t *testing.T) {
	got := runWith(t, &fakeEngine{}, "", "smoke", "--nodes", "gpu-9", "-o", "json")
	var v struct {
		Error    string
		ExitCode int
	}
	if err := json.Unmarshal([]byte(got.out), &v); err != nil || got.code != exitUsage || v.ExitCode != exitUsage || !strings.Contains(v.Error, "there are gpu-1, gpu-2") {
		t.Errorf("%d %q %v", got.code, got.out, err)
	}
}
