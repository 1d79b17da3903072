package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap"
	"github.com/gpuctl/gpuctl/bootstrap/k3s"
	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/kube"
)

func oneSnapshot(name string) bootstrap.SnapshotsResult {
	return bootstrap.SnapshotsResult{Cluster: "lab", Snapshots: []k3s.Snapshot{{
		Name: name + "-gpu-1-1764600000", Server: "gpu-1", Path: "/x", Size: 3 << 20, Created: time.Date(2026, 12, 1, 14, 40, 0, 0, time.UTC),
	}}}
}

func TestASnapshotIsSavedAndFetched(t *testing.T) {
	to := filepath.Join(t.TempDir(), "kept.db")
	f := &fakeEngine{fakeEtcd: fakeEtcd{
		saved:   func(_ context.Context, name string) (bootstrap.SnapshotsResult, error) { return oneSnapshot(name), nil },
		fetched: func(_ context.Context, name string, w io.Writer) error { _, err := io.WriteString(w, name); return err },
	}}
	got := runWith(t, f, "", "etcd", "snapshot", "save", "mine", "--to", to)
	data, err := os.ReadFile(to)
	if got.code != exitOK || err != nil || string(data) != "mine-gpu-1-1764600000" || !strings.Contains(got.out, "mine-gpu-1-1764600000  gpu-1  2026-12-01 14:40:00  3.0 MiB") {
		t.Errorf("code %d, %v, %q\n%s%s", got.code, err, data, got.out, got.err)
	}
	if info, err := os.Stat(to); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if again := runWith(t, f, "", "etcd", "snapshot", "save", "mine", "--to", to); again.code != exitUsage {
		t.Errorf("a file that is there: code %d", again.code)
	}
	f.fetched = func(context.Context, string, io.Writer) error { return errors.New("cut off") }
	other := to + ".2"
	if cut := runWith(t, f, "", "etcd", "snapshot", "save", "--to", other); cut.code == exitOK {
		t.Error("half a snapshot counts as one")
	}
	if _, err := os.Stat(other); err == nil {
		t.Error("half a snapshot is left")
	}
}

func TestADeleteIsAskedFor(t *testing.T) {
	deleted := ""
	f := func() *fakeEngine {
		return &fakeEngine{fakeEtcd: fakeEtcd{deleted: func(_ context.Context, name string) error { deleted = name; return nil }}}
	}
	if got := runWith(t, f(), "", "etcd", "snapshot", "delete", "old"); got.code != exitFindings || deleted != "" {
		t.Errorf("code %d, deleted %q", got.code, deleted)
	}
	if got := runWith(t, f(), "", "etcd", "snapshot", "delete", "old", "--yes"); got.code != exitOK || deleted != "old" {
		t.Errorf("code %d, deleted %q: %s", got.code, deleted, got.err)
	}
}

func TestTokensToRotate(t *testing.T) {
	for args, want := range map[string][2]bool{"": {true, true}, "--server": {true, false}, "--agent": {false, true}} {
		var o bootstrap.RotateOptions
		f := &fakeEngine{fakeEtcd: fakeEtcd{tokens: func(_ context.Context, got bootstrap.RotateOptions) (bootstrap.ApplyResult, error) {
			o = got
			return bootstrap.ApplyResult{}, nil
		}}}
		if got := runWith(t, f, "", append([]string{"token", "rotate"}, strings.Fields(args)...)...); got.code != exitOK || [2]bool{o.ServerToken, o.AgentToken} != want {
			t.Errorf("%q: code %d, %+v", args, got.code, o)
		}
	}
}

func TestUpgradeWritesTheFileAndTakesItBack(t *testing.T) {
	f := &fakeEngine{}
	f.upgrade = func(_ context.Context, o bootstrap.UpgradeOptions) (bootstrap.ApplyResult, error) {
		if f.deps.Config.Spec.Kubernetes.Version != "v1.37.1+k3s1" || o.MaxUnavailable != 3 || !o.NoDrain {
			t.Errorf("%+v of %+v", o, f.deps.Config.Spec.Kubernetes)
		}
		return bootstrap.ApplyResult{PlanResult: bootstrap.PlanResult{CheckResult: bootstrap.CheckResult{Cluster: "lab"}}}, nil
	}
	got := runWith(t, f, "", "upgrade", "--to", "v1.37.1+k3s1", "--max-unavailable", "3", "--no-drain")
	if got.code != exitOK || !strings.Contains(fileOf(t, got), "kubernetes: {version: \"v1.37.1+k3s1\"}") {
		t.Errorf("code %d: %s\n%s", got.code, got.err, fileOf(t, got))
	}
	f = &fakeEngine{fakeEtcd: fakeEtcd{upgrade: func(context.Context, bootstrap.UpgradeOptions) (bootstrap.ApplyResult, error) {
		return bootstrap.ApplyResult{}, &bootstrap.BlockedError{Findings: []diag.Finding{diag.Found("k3s-skips-minor", "gpu-1", "x")}}
	}}}
	if got := runWith(t, f, "", "upgrade", "--to", "v1.39.1+k3s1"); got.code != exitFindings || fileOf(t, got) != twoMachines {
		t.Errorf("a refused upgrade: code %d\n%s", got.code, fileOf(t, got))
	}
}

func TestAQuorumThatWouldBeLostIsAFinding(t *testing.T) {
	if code := exitCode(&kube.QuorumError{Reason: "x"}); code != exitFindings {
		t.Errorf("exit code %d", code)
	}
}
