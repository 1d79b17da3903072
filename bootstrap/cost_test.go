package bootstrap

import (
	"math"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/internal/config"
	"github.com/gpuctl/gpuctl/internal/kube"
)

func TestCostAddsUpWhatIsPaidAndWhatIsIdle(t *testing.T) {
	w := clusterOf(t, "server-1", "gpu-1", "gpu-2", "gpu-3")
	w.config.Spec.Groups = []config.Group{{Name: "gpu", Hourly: 4}, {Name: "cpu", Hourly: 0.5}}
	for i := range w.machines {
		w.machines[i].Group = "gpu"
	}
	w.machines[0].Group, w.machines[3].Group = "cpu", ""
	joined := noon().Add(-2 * time.Hour)
	state := kube.State{Nodes: []kube.Node{{Name: "server-1", Created: joined.Add(-time.Hour)}, {Name: "gpu-1", Created: joined}, {Name: "gpu-2", Created: joined}, {Name: "old", Created: joined}}}
	views := []NodeView{{Name: "server-1"}, {Name: "gpu-1", Allocatable: 8, InUse: 2}, {Name: "gpu-2", Allocatable: 8}, {Name: "old", Allocatable: 1}}
	end := noon().Add(-40 * time.Minute)
	r := w.cost(views, state, map[string]time.Time{"gpu-2": end, "gpu-1": end}, noon())
	if r.PerHour != 8.5 || r.IdlePerHour != 7 || math.Abs(r.IdleShare-7/8.5) > 1e-9 || r.Spent != 0.5*3+4*2+4*2 {
		t.Errorf("%+v", r)
	}
	if r.Since == nil || !r.Since.Equal(joined.Add(-time.Hour)) || len(r.Unpriced) != 2 {
		t.Errorf("since %v, without a price %v", r.Since, r.Unpriced)
	}
	for name, want := range map[string]struct {
		idle, joined bool
		long         time.Duration
	}{
		"server-1": {false, true, 0}, "gpu-1": {false, true, 0}, "gpu-2": {true, true, 40 * time.Minute},
		"gpu-3": {false, false, 0}, "old": {true, true, 0},
	} {
		for _, m := range r.Machines {
			if m.Name == name && (m.Idle != want.idle || m.Joined != want.joined || m.IdleFor(noon()) != want.long) {
				t.Errorf("%+v", m)
			}
		}
	}
}

func TestMeanUtilisation(t *testing.T) {
	loads := map[string]load{"GPU-1": {percent: 97}, "GPU-2": {percent: 0}, "GPU-3": {percent: -1}}
	if got := mean(loads); got == nil || *got != 49 {
		t.Errorf("%v of 97, 0 and one that does not tell", got)
	}
	if got := mean(map[string]load{"GPU-3": {percent: -1}}); got != nil {
		t.Errorf("%d of one that does not tell", *got)
	}
	if got := mean(nil); got != nil {
		t.Errorf("%d of none", *got)
	}
}
