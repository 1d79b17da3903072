//go:build lab

package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/gpuctl/gpuctl/e2e/lab/machine"
	"github.com/gpuctl/gpuctl/e2e/scene"
)

// TestKilledAtAnyMoment: a run that was killed -9 leaves nothing that the next
// one does not put right. The moments are events of an undisturbed run, chosen by
// a fixed seed, one in each stretch of it: three on a cluster without GPUs, two on
// one with. TestFullKilledAtManyMoments tries more.
func TestKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	killedAt(t, "kill-bare", 0, 3, 1)
	killedAt(t, "kill-gpu", 1, 2, 2)
}

// killedAt kills a run of one machine with so many GPUs at so many moments, each
// on a machine of its own.
func killedAt(t *testing.T, name string, gpus, kills int, seed uint64) {
	t.Run(name, func(t *testing.T) {
		var want scene.EndState
		var events int
		if !t.Run("undisturbed", func(t *testing.T) { want, events = undisturbed(t, name, gpus) }) {
			return
		}
		random := rand.New(rand.NewPCG(seed, 0))
		t.Attr("sampled", fmt.Sprintf("%d of %d", kills, events-1))
		for i := range kills {
			from, to := 1+i*(events-1)/kills, 1+(i+1)*(events-1)/kills
			moment := from + random.IntN(to-from)
			t.Run(fmt.Sprintf("event-%d", moment), func(t *testing.T) {
				if diff := want.Diff(killed(t, name, gpus, moment)); diff != "" {
					t.Errorf("killed after event %d of %d, the next run ends in another state:\n%s", moment, events, diff)
				}
			})
		}
	})
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
