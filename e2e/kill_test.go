//go:build lab

package e2e_test

import (
	"math/rand/v2"
	"testing"

	"github.com/gpuctl/gpuctl/e2e/lab/machine"
	"github.com/gpuctl/gpuctl/e2e/scene"
)

// TestKilledAtAnyMoment: a run that was killed -9 leaves nothing that the next
// one does not put right. The moments are events of an undisturbed run, chosen by
// a fixed seed, one in each stretch of it: three on a cluster without GPUs, two on
// one with.
func TestKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	for _, kind := range []struct {
		name        string
		gpus, kills int
		seed        uint64
	}{{"bare", 0, 3, 1}, {"gpu", 1, 2, 2}} {
		t.Run(kind.name, func(t *testing.T) {
			name := "kill-" + kind.name
			want, events := undisturbed(t, name, kind.gpus)
			random := rand.New(rand.NewPCG(kind.seed, 0))
			var moments []int
			for i := range kind.kills {
				stretch := (events - 1) / kind.kills
				moments = append(moments, 1+i*stretch+random.IntN(stretch))
			}
			t.Logf("an undisturbed run has %d events; killed after %v", events, moments)
			for _, moment := range moments {
				if diff := want.Diff(killed(t, name, kind.gpus, moment)); diff != "" {
					t.Errorf("killed after event %d, the next run ends in another state:\n%s", moment, diff)
				}
			}
		})
	}
}

// alone is a scene with one machine.
func alone(t *testing.T, name string, gpus int) *scene.Scene {
	t.Helper()
	s := stage.New(t, name)
	spec := machine.Spec{Name: "a"}
	if gpus > 0 {
		spec.GPU = scene.H100(gpus)
	}
	m := s.Machines(spec)[0]
	s.Write(scene.Cluster{Members: []scene.Member{{Machine: m, GPUs: gpus}}})
	return s
}

// undisturbed is the end of a run that nobody disturbs, and how much it says.
func undisturbed(t *testing.T, name string, gpus int) (scene.EndState, int) {
	t.Helper()
	s := alone(t, name, gpus)
	s.Must(0, "apply")
	return s.EndState().Comparable(), len(s.Events(s.Runs()[0]))
}

// killed kills a run after its n-th event and runs again.
func killed(t *testing.T, name string, gpus, n int) scene.EndState {
	t.Helper()
	s := alone(t, name, gpus)
	p := s.Start("apply")
	if p.WaitEvents(0, func(e []scene.Event) bool { return len(e) >= n }) {
		p.Kill()
	}
	if r := p.Wait(); r.Code != -1 {
		t.Logf("the run ended with exit code %d before its event %d", r.Code, n)
	}
	s.Must(0, "apply")
	return s.EndState().Comparable()
}
