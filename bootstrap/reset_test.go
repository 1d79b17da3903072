package bootstrap

import (
	"slices"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/bootstrap/nvidia"
)

// A reset takes off what is there: nodes leave a cluster that lives, the driver
// goes where gpuctl installed it and it was asked for, after k3s.
func TestResetPlans(t *testing.T) {
	w := clusterOf(t, "server-1", "gpu-1", "gpu-2")
	seen := func() sight {
		s := settledSight(t, w, 0, 2, 1)
		f := s.facts["gpu-1"]
		f.Files.Value[nvidia.PathNouveau] = host.File{Kind: "file"}
		f.Packages.Value.Installed["nvidia-open"] = "580.95.05-1"
		return s
	}
	for _, tc := range []struct {
		name    string
		options ResetOptions
		change  func(*sight)
		want    string
	}{
		{"the whole cluster", ResetOptions{}, nil, "server-1/k3s-reset gpu-1/k3s-reset gpu-2/k3s-reset"},
		{"with the driver", ResetOptions{Driver: true}, nil, "server-1/k3s-reset gpu-1/k3s-reset gpu-1/driver-remove gpu-2/k3s-reset"},
		{"one node", ResetOptions{Nodes: []string{"gpu-1"}, Driver: true}, nil, "gpu-1/drain gpu-1/node-delete gpu-1/k3s-reset gpu-1/driver-remove"},
		{"one node, and no API", ResetOptions{Nodes: []string{"gpu-1"}}, func(s *sight) { s.cluster = clusterSight{} }, "gpu-1/k3s-reset"},
		{"a machine that was not reached", ResetOptions{}, func(s *sight) { delete(s.facts, "gpu-2") }, "server-1/k3s-reset gpu-1/k3s-reset"},
		{"machines without a trace, and a driver", ResetOptions{Driver: true}, func(s *sight) {
			for name, f := range s.facts {
				f.K3s = host.Absent[host.K3s]()
				ours := map[string]host.File{}
				if _, there := f.Files.Value[nvidia.PathNouveau]; there {
					ours[nvidia.PathNouveau] = host.File{Kind: "file"}
				}
				f.Files = host.Known(ours)
				s.facts[name] = f
			}
		}, "gpu-1/driver-remove"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := seen()
			if tc.change != nil {
				tc.change(&s)
			}
			actions, err := w.resetActions(s, pure(), tc.options)
			if err != nil || ids(actions) != tc.want {
				t.Fatalf("%v: %s, want %s", err, ids(actions), tc.want)
			}
			for _, a := range actions {
				if a.Consent == "" {
					t.Errorf("%s asks for no consent", a.ID)
				}
				if before := "gpu-1/k3s-reset"; a.ID == "gpu-1/driver-remove" && len(actions) > 1 && !slices.Contains(a.Needs, before) {
					t.Errorf("the driver goes before %s: needs %v", before, a.Needs)
				}
			}
		})
	}
	if _, err := w.resetActions(seen(), pure(), ResetOptions{Nodes: []string{"server-1"}}); err == nil {
		t.Error("the only server was taken away alone")
	}
}
