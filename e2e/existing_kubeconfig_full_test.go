//go:build lab && full

package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/gpuctl/gpuctl/e2e/lab/machine"
	"github.com/gpuctl/gpuctl/e2e/scene"
)

// theirs is a second gpuctl.yaml, of somebody who has a cluster that gpuctl did
// not make: no machine stands in it but those that are to join.
const theirs = "theirs.yaml"

// TestFullExistingKubeconfig: a cluster without an operator, reached by its kubeconfig alone.
// The operator is installed and the GPUs are proven, and nobody logs in
// anywhere. Then the release is somebody else's, under a generated name, and is
// kept; an upgrade of it that was cut off is taken back.
func TestFullExistingKubeconfig(t *testing.T) {
	t.Parallel()
	s, m := withoutOperator(t, "theirs")
	s.existing(t, nil)
	logins := s.Logins(m)

	mentions(t, "the plan", s.Must(0, "plan", "-f", theirs).Stdout, "install GPU Operator", "see the GPU Operator ready")
	var first applied
	s.Decode(s.Must(0, "apply", "-f", theirs, "-o", "json"), &first)
	if !did(first, "cluster/gpu-operator", "cluster/gpu-ready", m.Name+"/smoke") || len(first.Machines) != 0 {
		t.Errorf("applied: %+v", first)
	}
	allProven(t, s, map[string]int{m.Name: 2})
	unchanged(t, s.Scene)
	healthy(t, s.Scene)
	var smoke struct {
		Passed bool
		Nodes  []struct{ UUIDs []string }
	}
	if s.Decode(s.Must(0, "smoke", "-f", theirs, "-o", "json"), &smoke); !smoke.Passed || len(smoke.Nodes) != 1 || len(smoke.Nodes[0].UUIDs) != 2 {
		t.Errorf("smoke: %+v", smoke)
	}
	if now := s.Logins(m); now != logins {
		t.Errorf("somebody logged in %d times; the API alone was to be used", now-logins)
	}

	const generated = "gpu-operator-1737000001"
	asGenerated(t, s.Scene, generated)
	r := s.Must(0, "plan", "-v", "-f", theirs)
	mentions(t, "the plan", r.Stdout, "gpu-operator/"+generated, "is kept with its values", "nothing to do")
	unchanged(t, s.Scene)

	asPending(t, s.Scene)
	mentions(t, "the plan", s.Must(0, "plan", "-f", theirs).Stdout, "mend release gpu-operator/"+generated, "pending-upgrade since")
	s.Must(0, "apply", "-f", theirs)
	if got := releases(s.Scene); len(got) != 3 || got[2] != generated+" 3 deployed" {
		t.Errorf("releases: %v", got)
	}
	unchanged(t, s.Scene)
	oneOperator(t, s.Scene)
}

// foreign is a scene whose user reaches the cluster by a kubeconfig.
type foreign struct {
	*scene.Scene
	kubeconfig string
}

// withoutOperator makes a machine with two GPUs a cluster that has no operator,
// and returns it as somebody else's.
func withoutOperator(t *testing.T, name string, more ...machine.Spec) (*foreign, *machine.Machine) {
	t.Helper()
	s := stage.New(t, name)
	all := s.Machines(append([]machine.Spec{{Name: "a", GPU: scene.H100(2)}}, more...)...)
	nothing := s.SetFile(func(set map[string]any) { delete(set, "devicePlugin") }) // else the device plugin comes alone
	s.Write(scene.Cluster{Members: []scene.Member{{Machine: all[0], GPUs: 2}}, Set: nothing,
		Spec: map[string]any{"gpu": map[string]any{"operator": map[string]any{"enabled": false}}}})
	s.Must(0, "apply")
	f := &foreign{Scene: s, kubeconfig: filepath.Join(s.Dir, "kc", "config")}
	if err := os.Mkdir(filepath.Dir(f.kubeconfig), 0o700); err != nil {
		t.Fatal(err)
	}
	s.Must(0, "kubeconfig", "--to", f.kubeconfig)
	return f, all[0]
}

// existing writes theirs: the kubeconfig by a path relative to the file, and
// what else is given, which replaces fields of spec.
func (f *foreign) existing(t *testing.T, spec map[string]any) {
	t.Helper()
	full := map[string]any{
		"set": f.SetFile(nil), "sources": f.Lab.Sources(),
		"kubernetes": map[string]any{"existing": map[string]any{"kubeconfig": "kc/config"}},
	}
	for key, value := range spec {
		full[key] = value
	}
	data, err := yaml.Marshal(map[string]any{
		"apiVersion": "gpuctl.dev/v1alpha1", "kind": "Cluster", "metadata": map[string]any{"name": f.Name + "-as-theirs"}, "spec": full,
	})
	if err == nil {
		err = os.WriteFile(filepath.Join(f.Dir, theirs), data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// did says whether all these actions are done.
func did(a applied, ids ...string) bool {
	for _, id := range ids {
		done := false
		for _, o := range a.Outcomes {
			done = done || o.ID == id && o.Status == "done"
		}
		if !done {
			return false
		}
	}
	return true
}

// unchanged applies once more and wants no action.
func unchanged(t *testing.T, s *scene.Scene) {
	t.Helper()
	var again applied
	s.Decode(s.Must(0, "apply", "-f", theirs, "-o", "json"), &again)
	if again.Changed != 0 || len(again.Outcomes) != 0 {
		t.Errorf("applied again: %+v", again.Outcomes)
	}
}

func allProven(t *testing.T, s *foreign, want map[string]int) {
	t.Helper()
	var got status
	s.Decode(s.Must(0, "status", "-f", theirs, "-o", "json"), &got)
	if got.Operator != "ready" || len(got.Nodes) != len(want) {
		t.Errorf("status: %+v", got)
	}
	for _, n := range got.Nodes {
		if n.GPUs != want[n.Name] || n.Proven != (want[n.Name] > 0) {
			t.Errorf("%s: %+v, want %d proven GPUs", n.Name, n, want[n.Name])
		}
	}
}

// healthy wants the doctor to use the API alone and to find nothing.
func healthy(t *testing.T, s *scene.Scene) {
	t.Helper()
	var got struct {
		Halves   []struct{ Name, State string }
		Findings []struct{ Code, Severity, Evidence string }
	}
	s.Decode(s.Must(0, "doctor", "-f", theirs, "-o", "json"), &got)
	if len(got.Halves) != 2 || got.Halves[0].State != "unused" || got.Halves[1].State != "whole" {
		t.Errorf("the doctor's halves: %+v", got.Halves)
	}
	for _, f := range got.Findings {
		if f.Severity != "informs" {
			t.Errorf("the doctor finds %+v", f)
		}
	}
	var list struct {
		GPUs []struct{ Model, Sharing, Health string }
	}
	if s.Decode(s.Must(0, "gpu", "list", "-f", theirs, "-o", "json"), &list); len(list.GPUs) != 2 || !strings.Contains(list.GPUs[0].Model, "H100") {
		t.Errorf("gpu list: %+v", list)
	}
}

// oneOperator wants no second copy of the operator, whatever its release is called.
func oneOperator(t *testing.T, s *scene.Scene) {
	t.Helper()
	var list struct {
		Items []struct {
			Metadata struct{ Namespace, Name string }
		}
	}
	if s.Kubectl(&list, "get deployments -A -l app.kubernetes.io/component=gpu-operator -o json"); len(list.Items) != 1 {
		t.Errorf("operators: %+v", list.Items)
	}
}
