package scene

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/e2e/lab/gpu"
	"github.com/gpuctl/gpuctl/e2e/lab/machine"
)

// Limits of what a scene does beside running gpuctl.
const (
	execLimit    = time.Minute
	machineLimit = 3 * time.Minute
)

// Scene is one test's machines and its user: a home, a state directory and a
// gpuctl.yaml.
type Scene struct {
	*Stage
	// Name is the cluster's name and the prefix of its machines' names.
	Name string
	// Dir holds gpuctl.yaml and is where gpuctl runs.
	Dir string
	// Env are further variables for gpuctl, NAME=value.
	Env []string

	t        testing.TB
	machines []*machine.Machine
	server   *machine.Machine
}

// New begins a scene. Its machines go at the end of the test, and a failure
// shows what they have to say.
func (s *Stage) New(t testing.TB, name string) *Scene {
	t.Helper()
	sc := &Scene{Stage: s, Name: name, Dir: t.TempDir(), t: t}
	for _, dir := range []string{"home", "state"} {
		if err := os.Mkdir(filepath.Join(sc.Dir, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	start := time.Now()
	t.Cleanup(func() {
		if t.Failed() {
			sc.tell()
		}
		sc.remove()
		t.Logf("%s took %s", t.Name(), time.Since(start).Round(time.Second))
	})
	return sc
}

// Machines starts machines; their names get the scene's as a prefix. What an
// earlier test left under those names is removed.
func (s *Scene) Machines(specs ...machine.Spec) []*machine.Machine {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), machineLimit)
	defer cancel()
	for i := range specs {
		specs[i].Name = s.Name + "-" + specs[i].Name
		if old, err := s.Lab.Get(ctx, specs[i].Name); err == nil {
			if err := old.Remove(ctx); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	made, err := s.Lab.Machines(ctx, specs...)
	for _, m := range made {
		if m != nil {
			s.machines = append(s.machines, m)
		}
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return made
}

// Others are the scene's machines but one.
func (s *Scene) Others(but *machine.Machine) []*machine.Machine {
	return slices.DeleteFunc(slices.Clone(s.machines), func(m *machine.Machine) bool { return m == but })
}

// remove takes the scene's machines away.
func (s *Scene) remove() {
	if Keep() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), machineLimit)
	defer cancel()
	for _, m := range s.machines {
		if err := m.Remove(ctx); err != nil {
			s.t.Error(err)
		}
	}
}

// H100 is a machine's GPUs for machine.Spec: n healthy cards.
func H100(n int) []byte {
	data, err := json.Marshal(gpu.H100(n))
	if err != nil {
		panic(err) // a plain struct
	}
	return data
}

// A100 is a machine's GPUs for machine.Spec: n healthy cards.
func A100(n int) []byte {
	data, err := json.Marshal(gpu.A100(n))
	if err != nil {
		panic(err) // a plain struct
	}
	return data
}

// Exec runs a script as root in a machine, past gpuctl and SSH, and returns what
// it printed without the space around it.
func (s *Scene) Exec(m *machine.Machine, script string) string {
	s.t.Helper()
	out, err := s.TryExec(m, script)
	if err != nil {
		s.t.Fatalf("%v\n%s", err, out)
	}
	return out
}

// TryExec is Exec for a script that may fail.
func (s *Scene) TryExec(m *machine.Machine, script string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), execLimit)
	defer cancel()
	out, err := m.Exec(ctx, script)
	return strings.TrimSpace(out), err
}

// Until waits until ready says "", or fails the test with its last reason.
func (s *Scene) Until(limit time.Duration, what string, ready func() string) {
	s.t.Helper()
	deadline := time.Now().Add(limit)
	for {
		reason := ready()
		if reason == "" {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("waiting %s for %s: %s", limit, what, reason)
		}
		select {
		case <-s.t.Context().Done():
			s.t.Fatalf("waiting for %s: %v: %s", what, s.t.Context().Err(), reason)
		case <-time.After(300 * time.Millisecond):
		}
	}
}

// sorted is the keys of m in order.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
