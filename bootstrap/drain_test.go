package bootstrap

import (
	"slices"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/internal/config"
)

// TestARunningNodeIsDrainedForItsDriver: another branch is wanted on a node
// that works; who closed the node decides whether it is opened again.
func TestARunningNodeIsDrainedForItsDriver(t *testing.T) {
	w := clusterOf(t, "server-1", "gpu-1")
	for name, tc := range map[string]struct {
		branch   string
		cordoned bool
		mark     string
		want     string
	}{
		"works":                    {"595", false, "", "drain driver reboot uncordon cluster/gpu-ready"},
		"closed by its user":       {"595", true, "", "drain driver reboot"},
		"drained":                  {"595", true, drainDone, "driver reboot uncordon smoke cluster/gpu-ready"},
		"half drained":             {"595", true, drainBegan, "drain driver reboot uncordon smoke cluster/gpu-ready"},
		"drained and changed":      {"580", true, drainDone, "uncordon smoke cluster/gpu-ready"},
		"opened by its user since": {"595", false, drainDone, "drain driver reboot uncordon smoke cluster/gpu-ready"},
		"nothing to do":            {"580", false, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w.config.Spec.Groups = []config.Group{{Name: "gpu", Driver: config.Driver{Mode: "auto", Branch: tc.branch}}}
			w.machines[1].Group = "gpu"
			s := settledSight(t, w, 0, 2)
			s.cluster.state.Nodes[1].Cordoned = tc.cordoned
			if tc.mark != "" {
				s.cluster.state.Nodes[1].Annotations = map[string]string{drainedAnnotation: tc.mark} // the proof is gone
			}
			var ids []string
			actions := map[string]plan.Action{}
			for _, a := range w.contents(s, pure()).actions {
				id := strings.TrimPrefix(a.ID, "gpu-1/")
				ids, actions[id] = append(ids, id), a
			}
			if got := strings.Join(ids, " "); got != tc.want {
				t.Fatalf("pending %q, want %q", got, tc.want)
			}
			if a, there := actions["drain"]; there {
				if a.Consent != plan.ConsentDrain || !slices.Contains(actions["driver"].Needs, a.ID) || !slices.Contains(actions["reboot"].Needs, a.ID) {
					t.Errorf("the drain does not come first, with consent: %+v", actions)
				}
			}
			if a, there := actions["smoke"]; there && !slices.Contains(a.Needs, "gpu-1/reboot") && actions["reboot"].ID != "" {
				t.Errorf("the GPUs are proven before the reboot: %v", a.Needs)
			}
			if a, there := actions["uncordon"]; there {
				for _, id := range []string{"gpu-1/driver", "gpu-1/reboot", "gpu-1/smoke", "gpu-1/node"} {
					if !slices.Contains(a.Needs, id) {
						t.Errorf("the node is opened before %s", id)
					}
				}
			}
		})
	}
}

// TestPlanOfAMachineWithoutADriver pins the order: driver, reboot, toolkit, k3s.
func TestPlanOfAMachineWithoutADriver(t *testing.T) {
	w := clusterOf(t, "box")
	s := sightOf(w, 2)
	s.facts["box"] = withoutDriver(s.facts["box"])
	golden(t, "fresh-no-driver", render(w.contents(s, pure())))
}
