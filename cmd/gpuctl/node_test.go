package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/bootstrap/sshconn"
	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/kube"
)

// fileOf is gpuctl.yaml as a command left it.
func fileOf(t *testing.T, o outcome) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(o.dir, "gpuctl.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestNodeList(t *testing.T) {
	eight, since := 8, time.Date(2026, 12, 1, 5, 0, 0, 0, time.UTC)
	f := func() *fakeEngine {
		nodes := sampleNodes()
		return &fakeEngine{fakeNodes: fakeNodes{list: func(context.Context) (bootstrap.NodeListResult, error) {
			return bootstrap.NodeListResult{Cluster: "lab", Nodes: []bootstrap.NodeEntry{
				{NodeView: nodes[0], State: bootstrap.NodeIsReady, Host: "203.0.113.10", Joined: true, Cordoned: true},
				{NodeView: bootstrap.NodeView{Name: "gpu-2", Role: "agent"}, State: bootstrap.NodeMissing, Host: "203.0.113.11", Promised: &eight},
				{NodeView: bootstrap.NodeView{Name: "gpu-3", Role: "agent", GPUs: 8, Allocatable: 7, Why: "kubelet stopped"}, State: bootstrap.NodeNotReady,
					Host: "203.0.113.12", Joined: true, Promised: &eight, NotReadySince: &since},
				{NodeView: nodes[1], State: bootstrap.NodeUnlisted, Joined: true},
			}}, nil
		}}}
	}
	golden(t, "node-list.txt", runWith(t, f(), "", "node", "list").out)
	golden(t, "node-list.json", runWith(t, f(), "", "node", "list", "-o", "json").out)
}

func TestNodeAddWritesTheFileAndAppliesToTheNewMachines(t *testing.T) {
	f := applied(nil)
	apply := f.apply
	f.apply = func(ctx context.Context, o bootstrap.ApplyOptions) (bootstrap.ApplyResult, error) {
		if strings.Join(f.deps.Nodes, " ") != "gpu-9 node-4" || len(f.deps.Inventory.Machines) != 4 {
			t.Errorf("nodes %v of %+v", f.deps.Nodes, f.deps.Inventory)
		}
		return apply(ctx, o)
	}
	got := runWith(t, f, "", "node", "add", "ubuntu@gpu-9.example.com:2222", "203.0.113.12", "--gpus", "8", "--yes")
	want := twoMachines + "    - {name: gpu-9, role: agent, host: gpu-9.example.com, user: ubuntu, port: 2222, gpus: 8}\n" +
		"    - {name: node-4, role: agent, host: \"203.0.113.12\", gpus: 8}\n"
	if got.code != exitOK || fileOf(t, got) != want {
		t.Errorf("exit code %d: %s\n%s", got.code, got.err, fileOf(t, got))
	}
	if !strings.Contains(got.err, "added gpu-9, node-4 to DIR/gpuctl.yaml") {
		t.Errorf("said %s", got.err)
	}
}

func TestNodeAddLeavesTheFileAloneWhenSomethingIsWrong(t *testing.T) {
	for _, args := range [][]string{
		{"ubuntu@203.0.113.12", "http://x"},
		{"203.0.113.12", "--name", "gpu-1"},
		{"203.0.113.12", "203.0.113.13", "--name", "a"},
		{"203.0.113.12", "--group", "nowhere"},
		{"203.0.113.12", "--gpus", "-1"},
		{"203.0.113.12", "--nodes", "gpu-1"},
	} {
		got := runWith(t, &fakeEngine{}, "", append([]string{"node", "add"}, args...)...)
		if got.code != exitUsage || fileOf(t, got) != twoMachines {
			t.Errorf("%v: exit code %d: %s\n%s", args, got.code, got.err, fileOf(t, got))
		}
	}
}

func TestNodeAddOfAMachineThatIsListedGoesOn(t *testing.T) {
	got := runWith(t, applied(nil), "", "node", "add", "203.0.113.11", "--yes")
	if got.code != exitOK || fileOf(t, got) != twoMachines {
		t.Errorf("exit code %d: %s\n%s", got.code, got.err, fileOf(t, got))
	}
}

// removal is an engine that asks for consent and then removes what it is told.
func removal(removed []string, fail error) *fakeEngine {
	f := &fakeEngine{}
	p := bootstrap.PlanResult{CheckResult: bootstrap.CheckResult{Cluster: "lab"}, Actions: []bootstrap.ActionView{
		{ID: "gpu-2/drain", Machine: "gpu-2", Title: "drain the node", Reason: "it leaves the cluster", Consent: "drain"}}}
	f.remove = func(ctx context.Context, o bootstrap.RemoveOptions) (bootstrap.RemoveResult, error) {
		r := bootstrap.RemoveResult{ApplyResult: bootstrap.ApplyResult{PlanResult: p}, Removed: []string{}}
		if err := o.Confirm(ctx, p); err != nil {
			return r, err
		}
		r.Outcomes = []bootstrap.OutcomeView{{ActionView: p.Actions[0], Status: "done"}}
		r.Removed, r.Changed = removed, 1
		return r, fail
	}
	return f
}

func TestNodeRemoveTakesTheMachineOutOfTheFile(t *testing.T) {
	got := runWith(t, removal([]string{"gpu-2"}, nil), "", "node", "remove", "GPU-2", "--yes")
	if want := strings.Replace(twoMachines, "    - {name: gpu-2, host: 203.0.113.11}\n", "", 1); got.code != exitOK || fileOf(t, got) != want {
		t.Errorf("exit code %d: %s\n%s", got.code, got.err, fileOf(t, got))
	}
	golden(t, "node-remove.txt", got.out)
	golden(t, "node-remove.json", runWith(t, removal([]string{"gpu-2"}, nil), "", "node", "remove", "gpu-2", "--yes", "-o", "json").out)
}

func TestNodeRemoveAsksAndKeepsWhatStays(t *testing.T) {
	for stdin, want := range map[string]int{"n\n": exitFindings, "": exitFindings} {
		got := runWith(t, removal([]string{"gpu-2"}, nil), stdin, "node", "remove", "gpu-2")
		if got.code != want || fileOf(t, got) != twoMachines || !strings.Contains(got.err, "drain      gpu-2: drain the node") {
			t.Errorf("answer %q: exit code %d: %s", stdin, got.code, got.err)
		}
	}
	unreached := &remote.ConnectError{Host: "gpu-2", Kind: remote.Filtered, Hint: "is there a firewall?"}
	stays := &bootstrap.StaysError{Node: "gpu-2", Reason: "its machine is not reached", Err: unreached}
	got := runWith(t, removal(nil, stays), "", "node", "remove", "gpu-2", "--yes")
	if got.code != exitUnreachable || fileOf(t, got) != twoMachines || !strings.Contains(got.err, "gpuctl node remove gpu-2 --gone") {
		t.Errorf("exit code %d: %s", got.code, got.err)
	}
	pods := &plan.ActionError{Action: plan.Action{Machine: "gpu-2", Title: "drain the node"}, Status: plan.Failed,
		Err: &kube.DrainError{Node: "gpu-2", Blockers: []kube.Blocker{{Pod: "inference/llm-0", Reason: kube.Budget}}}}
	got = runWith(t, removal(nil, pods), "", "node", "remove", "gpu-2", "--yes")
	if got.code != exitAction || !strings.Contains(got.err, "inference/llm-0") || !strings.Contains(got.err, "gpuctl node uncordon gpu-2") {
		t.Errorf("exit code %d: %s", got.code, got.err)
	}
}

func TestNodeRemovePassesTheDecisions(t *testing.T) {
	for args, want := range map[string]bootstrap.RemoveOptions{
		"":                             {Drain: kube.DrainOptions{Limit: 5 * time.Minute}},
		"--gone --drain-timeout 1m":    {Gone: true, Drain: kube.DrainOptions{Limit: time.Minute}},
		"--force":                      {Drain: kube.DrainOptions{DeleteBare: true, DeleteLocalData: true, Limit: 5 * time.Minute}},
		"--delete-bare":                {Drain: kube.DrainOptions{DeleteBare: true, Limit: 5 * time.Minute}},
		"--delete-local-data gpu-2 -y": {Drain: kube.DrainOptions{DeleteLocalData: true, Limit: 5 * time.Minute}},
	} {
		f := &fakeEngine{}
		f.remove = func(_ context.Context, o bootstrap.RemoveOptions) (bootstrap.RemoveResult, error) {
			if o.Gone != want.Gone || o.Drain != want.Drain || strings.Join(o.Nodes, " ") != "gpu-2" {
				t.Errorf("%q: %+v", args, o)
			}
			return bootstrap.RemoveResult{}, &bootstrap.NotANodeError{Name: "gpu-2"}
		}
		if got := runWith(t, f, "", append([]string{"node", "remove", "gpu-2"}, strings.Fields(args)...)...); got.code != exitUsage {
			t.Errorf("%q: exit code %d", args, got.code)
		}
	}
}

func TestNodeDrainBlockedByPodsIsExit3(t *testing.T) {
	found := []diag.Finding{diag.Found("drain-blocked", "gpu-2", "pod default/train-by-hand: "+kube.NoController)}
	f := &fakeEngine{}
	f.drain = func(context.Context, bootstrap.DrainOptions) (bootstrap.ApplyResult, error) {
		return bootstrap.ApplyResult{PlanResult: bootstrap.PlanResult{CheckResult: bootstrap.CheckResult{Cluster: "lab", Findings: found}}},
			&bootstrap.BlockedError{Findings: found}
	}
	got := runWith(t, f, "", "node", "drain", "gpu-2", "--yes")
	if got.code != exitFindings || !strings.Contains(got.out, "default/train-by-hand") || !strings.Contains(got.out, "drain-blocked") {
		t.Errorf("exit code %d:\n%s\n%s", got.code, got.out, got.err)
	}
}

func TestNodeCordonAndUncordon(t *testing.T) {
	for verb, want := range map[string]bool{"cordon": true, "uncordon": false} {
		f := &fakeEngine{}
		f.cordon = func(_ context.Context, names []string, on bool) (bootstrap.ApplyResult, error) {
			if on != want || strings.Join(names, " ") != "gpu-2 gpu-1" {
				t.Errorf("%s: %v %v", verb, names, on)
			}
			return bootstrap.ApplyResult{PlanResult: bootstrap.PlanResult{CheckResult: bootstrap.CheckResult{Cluster: "lab"}}}, nil
		}
		if got := runWith(t, f, "", "node", verb, "gpu-2", "gpu-1", "gpu-2"); got.code != exitOK || !strings.Contains(got.out, "nothing to do") {
			t.Errorf("%s: exit code %d: %s%s", verb, got.code, got.out, got.err)
		}
	}
}

func TestNodeReapTakesATime(t *testing.T) {
	f := &fakeEngine{}
	f.reap = func(_ context.Context, o bootstrap.ReapOptions) (bootstrap.RemoveResult, error) {
		if o.After != 10*time.Minute {
			t.Errorf("after %s", o.After)
		}
		return bootstrap.RemoveResult{ApplyResult: bootstrap.ApplyResult{PlanResult: bootstrap.PlanResult{CheckResult: bootstrap.CheckResult{Cluster: "lab"}}}, Removed: []string{"gpu-2"}}, nil
	}
	if got := runWith(t, f, "", "node", "reap", "--after", "10m", "--yes"); got.code != exitOK || strings.Contains(fileOf(t, got), "gpu-2") {
		t.Errorf("exit code %d: %s\n%s", got.code, got.err, fileOf(t, got))
	}
	for _, args := range [][]string{{"node", "reap"}, {"node", "reap", "--after", "5s"}, {"node", "reap", "--after", "10m", "--nodes", "gpu-2"}} {
		if got := runWith(t, &fakeEngine{}, "", args...); got.code != exitUsage {
			t.Errorf("%v: exit code %d", args, got.code)
		}
	}
}

// changedKey is what connecting to a rebuilt machine comes to.
func changedKey(kind remote.ConnectKind) error {
	changed := &sshconn.KeyChangedError{Name: "203.0.113.11", Known: []string{"ssh-ed25519 SHA256:old (known_hosts:1)"}, Offered: "ssh-ed25519 SHA256:new"}
	return &remote.ConnectError{Host: "gpu-2", Kind: kind, Err: changed}
}

func TestNodeReplaceShowsBothKeysAndNeedsMoreThanYes(t *testing.T) {
	for _, tc := range []struct {
		stdin string
		kind  remote.ConnectKind
		args  []string
		want  int
	}{
		{"", remote.HostKey, []string{"--yes"}, exitFindings},
		{"n\n", remote.HostKey, nil, exitFindings},
		{"", remote.Filtered, []string{"--yes", "--accept-new-host-key"}, exitUnreachable},
		{"", remote.Jump, []string{"--yes", "--accept-new-host-key"}, exitUnreachable}, // the key of the jump host
	} {
		f := &fakeEngine{fakeNodes: fakeNodes{reach: func(context.Context, string) error { return changedKey(tc.kind) }}}
		got := runWith(t, f, tc.stdin, append([]string{"node", "replace", "gpu-2", "--host", "203.0.113.40"}, tc.args...)...)
		if got.code != tc.want || fileOf(t, got) != twoMachines {
			t.Errorf("%s %v: exit code %d, want %d: %s\n%s", tc.kind, tc.args, got.code, tc.want, got.err, fileOf(t, got))
		}
		if shown := strings.Contains(got.err, "SHA256:old") && strings.Contains(got.err, "now:   ssh-ed25519 SHA256:new"); tc.kind == remote.HostKey && !shown {
			t.Errorf("keys are not shown: %s", got.err)
		}
		if _, err := os.Stat(filepath.Join(got.dir, "state", "gpuctl", "lab", "known_hosts")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: known_hosts was written: %v", tc.kind, err)
		}
	}
}

func TestNodeReplaceAtANewAddress(t *testing.T) {
	f := &fakeEngine{fakeNodes: fakeNodes{reach: func(context.Context, string) error { return nil }}}
	f.replace = func(_ context.Context, o bootstrap.ReplaceOptions) (bootstrap.ApplyResult, error) {
		m, _ := f.deps.Inventory.Find("gpu-2")
		if o.Node != "gpu-2" || strings.Join(f.deps.Nodes, " ") != "gpu-2" || m.Host != "203.0.113.40" || m.User != "root" {
			t.Errorf("%+v, nodes %v, machine %+v", o, f.deps.Nodes, m)
		}
		return bootstrap.ApplyResult{PlanResult: samplePlan(), Nodes: sampleNodes()}, nil
	}
	got := runWith(t, f, "", "node", "replace", "gpu-2", "--host", "root@203.0.113.40", "--yes")
	if want := strings.Replace(twoMachines, "host: 203.0.113.11", `host: "203.0.113.40", user: root`, 1); got.code != exitOK || fileOf(t, got) != want {
		t.Errorf("exit code %d: %s\n%s", got.code, got.err, fileOf(t, got))
	}
	for _, args := range [][]string{{"gpu-1"}, {"nobody"}, {"gpu-2", "--host", "ftp://x"}, {"gpu-2", "gpu-3"}, {"gpu-2", "--host", "203.0.113.10"}} {
		got := runWith(t, &fakeEngine{}, "", append([]string{"node", "replace"}, args...)...)
		if got.code != exitUsage || fileOf(t, got) != twoMachines {
			t.Errorf("%v: exit code %d: %s", args, got.code, got.err)
		}
	}
}
