package bootstrap

import (
	"slices"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/internal/config"
)

// TestTheOperatorsToolkitFindsK3sContainerdCase049: the socket alone is enough
// until Docker's containerd is on the PATH; then its file is named too. Seen or
// not, a release does not change back and forth.
func TestTheOperatorsToolkitFindsK3sContainerdCase049(t *testing.T) {
	docker := host.Known([]host.Other{{Name: "docker", Detail: "dockerd 1733", Running: true}})
	for name, c := range map[string]struct {
		change func(*wanted, *sight)
		want   string
	}{
		"no other engine":         {func(*wanted, *sight) {}, ""},
		"Docker that was stopped": {func(_ *wanted, s *sight) { others(s, "gpu-1", host.Known([]host.Other{{Name: "docker"}})) }, ""},
		"Docker runs":             {func(_ *wanted, s *sight) { others(s, "gpu-1", docker) }, "/var/lib/rancher/k3s/agent/etc/containerd/config.toml"},
		"the system's containerd": {func(_ *wanted, s *sight) {
			others(s, "gpu-1", host.Known([]host.Other{{Name: "containerd", Detail: "1501", Running: true}}))
		}, "/var/lib/rancher/k3s/agent/etc/containerd/config.toml"},
		"on a disk of its own": {func(w *wanted, s *sight) {
			others(s, "gpu-1", docker)
			w.machines[1].DataDir = "/data/k3s"
		}, "/data/k3s/agent/etc/containerd/config.toml"},
		"Docker on a machine the operator does not serve": {func(_ *wanted, s *sight) { others(s, "gpu-2", docker) }, ""},
		"not seen now": {func(_ *wanted, s *sight) {
			delete(s.facts, "gpu-1")
			s.cluster.release.Values = map[string]any{"toolkit": map[string]any{"env": []any{map[string]any{"name": "CONTAINERD_CONFIG", "value": "/was/there"}}}}
		}, "/was/there"},
	} {
		w := clusterOf(t, "server-1", "gpu-1", "gpu-2")
		w.config.Spec.Groups = []config.Group{{Name: "theirs", Driver: config.Driver{Mode: "operator", Modules: "auto"}}}
		w.machines[1].Group = "theirs"
		s := sightOf(w, 0, 1, 1)
		c.change(&w, &s)
		rel, _ := w.operator(s)
		if got := envOf(rel.Values, "CONTAINERD_CONFIG"); got != c.want {
			t.Errorf("%s: CONTAINERD_CONFIG %q, want %q", name, got, c.want)
		}
		if envOf(rel.Values, "CONTAINERD_SOCKET") == "" {
			t.Errorf("%s: no socket", name)
		}
	}
	s := sightOf(clusterOf(t, "server-1", "gpu-1"), 0, 1)
	others(&s, "gpu-1", docker)
	if got := secondEngines(s); !slices.Equal(got, []string{"gpu-1"}) {
		t.Errorf("the doctor sees second engines on %v", got)
	}
}

func others(s *sight, machine string, o host.Fact[[]host.Other]) {
	f := s.facts[machine]
	f.Others = o
	s.facts[machine] = f
}
