package bootstrap

import (
	"testing"

	"github.com/gpuctl/gpuctl/internal/config"
	"github.com/gpuctl/gpuctl/internal/kube"
)

func TestMachinesOfASpotGroupWatchForTheirNotice(t *testing.T) {
	w := clusterOf(t, "server-1", "gpu-1")
	w.config.Spec.Provider = "gcp"
	w.config.Spec.Groups = []config.Group{{Name: "cheap", Spot: true}}
	watching := func() (ids []string) {
		for _, a := range w.contents(settledSight(t, w, 0, 0), pure()).actions {
			if a.ID == a.Machine+"/host-spot" {
				ids = append(ids, a.ID)
			}
		}
		return ids
	}
	if ids := watching(); len(ids) > 0 {
		t.Errorf("without a spot group: %v", ids)
	}
	w.machines[1].Group = "cheap"
	if ids := watching(); len(ids) != 1 || ids[0] != "gpu-1/host-spot" {
		t.Errorf("with a spot group: %v", ids)
	}
	if s := w.spot(w.machines[1]); s.Provider != "gcp" || s.Seconds != 30 || s.After != "gpu-1/k3s" {
		t.Errorf("%+v", s)
	}
}

func TestASpotNoticeIsToldOfItsNodeAlone(t *testing.T) {
	w := clusterOf(t, "server-1", "gpu-1")
	s := settledSight(t, w, 0, 0)
	if b := w.contents(s, pure()); len(b.findings) > 0 {
		t.Fatalf("%+v", b.findings)
	}
	for i, n := range s.cluster.state.Nodes {
		if n.Name == "gpu-1" {
			s.cluster.state.Nodes[i].Annotations = map[string]string{spotNotice: "2026-12-01T12:00:00Z"}
		}
	}
	b := w.contents(s, pure())
	if len(b.findings) != 1 || b.findings[0].Code != "node-spot-notice" || b.findings[0].Machine != "gpu-1" || b.findings[0].Evidence != "notice came at 2026-12-01T12:00:00Z" {
		t.Errorf("%+v", b.findings)
	}
	if found := leaving(kube.State{Nodes: []kube.Node{{Name: "gpu-1"}}}); len(found) > 0 {
		t.Errorf("%+v", found)
	}
}
