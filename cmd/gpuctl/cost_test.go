package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap"
)

func TestCostRemembersWhenAMachineWasFirstSeenIdle(t *testing.T) {
	price, percent := 4.0, 37
	ended := time.Now().Add(-45 * time.Minute)
	f := func() *fakeEngine {
		return &fakeEngine{cost: func(context.Context, time.Time) (bootstrap.CostResult, error) {
			return bootstrap.CostResult{Cluster: "lab", PerHour: 12, IdlePerHour: 8, IdleShare: 8.0 / 12, Machines: []bootstrap.MachineCost{
				{Name: "busy", Role: "agent", Hourly: &price, Joined: true, Allocatable: 8, InUse: 8, Utilisation: &percent},
				{Name: "known", Role: "agent", Hourly: &price, Joined: true, Allocatable: 8, Idle: true, IdleSince: &ended},
				{Name: "seen", Role: "agent", Hourly: &price, Joined: true, Allocatable: 8, Idle: true},
			}}, nil
		}}
	}
	got := runWith(t, f(), "", "cost")
	for _, want := range []string{"12.00 per hour, 8.00 of it (67%)", "37%", "for 45m", "since unknown, first seen "} {
		if got.code != 0 || !strings.Contains(got.out, want) {
			t.Errorf("exit code %d: %q is missing in:\n%s", got.code, want, got.out)
		}
	}
	idle := func(args ...string) (names []string) {
		t.Helper()
		got := runWith(t, f(), "", append([]string{"cost", "-o", "json"}, args...)...)
		var r struct{ Machines []struct{ Name string } }
		if err := json.Unmarshal([]byte(got.out), &r); err != nil {
			t.Fatalf("%v: %s", err, got.out)
		}
		for _, m := range r.Machines {
			names = append(names, m.Name)
		}
		return names
	}
	if names := idle("--idle-for", "30m"); strings.Join(names, " ") != "known" {
		t.Errorf("idle for 30 minutes: %v", names)
	}
	if names := idle("--idle-for", "1h"); len(names) != 0 {
		t.Errorf("idle for an hour: %v", names)
	}
	if got := runWith(t, f(), "", "cost", "--idle-for", "-1m"); got.code != exitUsage {
		t.Errorf("a negative time: exit code %d", got.code)
	}
}

// rentedYAML is a cluster whose machines come from a program that speaks as Terraform does.
const rentedYAML = `apiVersion: gpuctl.dev/v1alpha1
kind: Cluster
metadata: {name: lab}
spec:
  groups: [{name: gpu, terraformVariable: gpus}, {name: other}]
  machinesFrom:
    terraform:
      dir: infra
      variables: {gpus: 2} # now
`

// rentalProgram has two GPU machines; its plan takes the last one away.
const rentalProgram = `#!/bin/sh
case "$1" in
version) echo '{"terraform_version": "1.11.4"}' ;;
init) ;;
output) if [ -e shrunk ]; then cat one.json; else cat two.json; fi ;;
show) echo '{"format_version":"1.2","terraform_version":"1.11.4","output_changes":{"gpuctl":{"actions":["update"],"after_unknown":false,"after":'"$(sed 's/^{"gpuctl":{"value":\(.*\)}}$/\1/' one.json)"'}}}' ;;
plan) echo '{"type":"planned_change","change":{"resource":{"addr":"x.gpu[1]"},"action":"delete"}}'
	echo '{"type":"change_summary","changes":{"add":0,"change":0,"remove":1,"operation":"plan"}}'; exit 2 ;;
apply) : > shrunk; echo '{"type":"change_summary","changes":{"add":0,"change":0,"remove":1,"operation":"apply"}}' ;;
esac
`

// rentedCluster writes the file, the root module and the program, and returns the file.
func rentedCluster(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	one := `{"name":"server","role":"server","host":"203.0.113.1"},{"name":"gpu-1","role":"agent","group":"gpu","host":"203.0.113.2"}`
	for name, text := range map[string]string{
		"gpuctl.yaml": rentedYAML, "bin/terraform": rentalProgram, "infra/one.json": `{"gpuctl":{"value":[` + one + `]}}`,
		"infra/two.json": `{"gpuctl":{"value":[` + one + `,{"name":"gpu-2","role":"agent","group":"gpu","host":"203.0.113.3"}]}}`,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", filepath.Join(dir, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	return filepath.Join(dir, "gpuctl.yaml")
}

func TestScaleEmptiesWhatGoesBeforeItGivesItBack(t *testing.T) {
	file := rentedCluster(t)
	shrunk := filepath.Join(filepath.Dir(file), "infra", "shrunk")
	fake := func(removed []string, err error) *fakeEngine {
		f := &fakeEngine{}
		f.list = func(context.Context) (bootstrap.NodeListResult, error) {
			return bootstrap.NodeListResult{Nodes: []bootstrap.NodeEntry{{NodeView: bootstrap.NodeView{Name: "gpu-1"}, Joined: true}, {NodeView: bootstrap.NodeView{Name: "gpu-2"}, Joined: true}}}, nil
		}
		f.remove = func(_ context.Context, o bootstrap.RemoveOptions) (bootstrap.RemoveResult, error) {
			if _, early := os.Stat(shrunk); early == nil || strings.Join(o.Nodes, " ") != "gpu-2" {
				t.Errorf("removing %v, given back already: %v", o.Nodes, early == nil)
			}
			return bootstrap.RemoveResult{Removed: removed}, err
		}
		return f
	}
	for name, args := range map[string][]string{
		"no number": {"scale", "gpu"}, "too many": {"scale", "gpu", "--to", "2000"}, "no such group": {"scale", "nope", "--to", "1"}, "no variable": {"scale", "other", "--to", "1"},
	} {
		if got := runWith(t, &fakeEngine{}, "", append([]string{"-f", file}, args...)...); got.code != exitUsage {
			t.Errorf("%s: exit code %d: %s", name, got.code, got.err)
		}
	}
	got := runWith(t, &fakeEngine{}, "", "scale", "gpu", "--to", "1", "-f", file)
	if got.code != exitFindings || !strings.Contains(got.err, "machine gpu-2: gone") {
		t.Errorf("without consent: exit code %d: %s", got.code, got.err)
	}
	got = runWith(t, fake(nil, &bootstrap.StaysError{Node: "gpu-2", Reason: "a pod stands in the way"}), "", "scale", "gpu", "--to", "1", "-f", file, "--yes")
	if _, err := os.Stat(shrunk); got.code != exitFindings || err == nil || !strings.Contains(got.err, "nothing is given back") {
		t.Errorf("a pod in the way: exit code %d, given back %v: %s", got.code, err == nil, got.err)
	}
	if data, _ := os.ReadFile(file); string(data) != rentedYAML {
		t.Errorf("the file changed:\n%s", data)
	}
	got = runWith(t, fake([]string{"gpu-2"}, nil), "", "scale", "gpu", "--to", "1", "-f", file, "--yes")
	if _, err := os.Stat(shrunk); got.code != 0 || err != nil || !strings.Contains(got.out, "1 destroyed; gpus is 1 now") {
		t.Errorf("exit code %d, %v: %s%s", got.code, err, got.out, got.err)
	}
	if data, _ := os.ReadFile(file); string(data) != strings.Replace(rentedYAML, "gpus: 2}", "gpus: 1}", 1) {
		t.Errorf("the file:\n%s", data)
	}
}
