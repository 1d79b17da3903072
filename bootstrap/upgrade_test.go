package bootstrap

import (
	"errors"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/internal/diag"
)

const (
	oldRelease = "v1.35.2+k3s1"
	newRelease = "v1.36.3+k3s1"
)

// behind is a running cluster of an older release than the file's.
func behind(t *testing.T, servers, agents int, installed, wantedRelease string) (wanted, sight) {
	t.Helper()
	s := settledServers(t, serversOf(t, servers, agents, "version: "+installed))
	return serversOf(t, servers, agents, "version: "+wantedRelease), s
}

func TestApplyLeavesReleasesAlone(t *testing.T) {
	w, s := behind(t, 1, 2, oldRelease, newRelease)
	b := w.contents(s, pure())
	if len(b.actions) > 0 || !strings.Contains(codesIn(b.findings), "k3s-upgrade-waits") || diag.AnyBlocks(b.findings) {
		t.Errorf("pending %s, findings %s", ids(b.actions), codesIn(b.findings))
	}
	s.facts["a2"] = fresh(3, 0) // a new agent must not be newer than the servers
	m, _ := w.config.Inventory().Find("a2")
	if got := w.release(m, s); got != oldRelease {
		t.Errorf("a new agent gets %s", got)
	}
	if got := codesIn(w.contents(settledServers(t, w), pure()).findings); strings.Contains(got, "k3s-upgrade-waits") {
		t.Errorf("nothing waits: %s", got)
	}
}

func TestAnUpgradeGoesServersFirst(t *testing.T) {
	w, s := behind(t, 3, 3, oldRelease, newRelease)
	w.upgrade = &upgrade{unavailable: 2, drain: true}
	b := w.contents(s, pure())
	golden(t, "upgrade-three-servers", render(b))
	for id, want := range map[string][]string{
		"s1/drain": {snapshotID},
		"s1/k3s":   {"s1/drain", snapshotID},
		"s2/drain": {"s1/k3s", "s1/node", "s1/uncordon"},
		"s3/drain": {"s2/uncordon"},
		"a1/drain": {"s3/uncordon"},
		"a2/drain": {"s3/uncordon"},
		"a3/drain": {"s3/uncordon", "a1/uncordon"},
		"a3/node":  {"a3/k3s"},
	} {
		for _, need := range want {
			if got := needsOf(b, id); !strings.Contains(" "+got+" ", " "+need+" ") {
				t.Errorf("%s needs %q, want %s", id, got, need)
			}
		}
	}
	w.upgrade.saved.Store(true)
	if got := ids(w.contents(s, pure()).actions); strings.Contains(got, snapshotID) {
		t.Errorf("a second snapshot in one run: %s", got)
	}
	if got := needsOf(b, "a2/drain"); strings.Contains(got, "a1/") {
		t.Errorf("two may be away at once, and a2 waits: %s", got)
	}
}

func TestAnUpgradeGoesOnWhereItWas(t *testing.T) {
	w, s := behind(t, 1, 1, oldRelease, newRelease)
	up := settledServers(t, w)
	s.facts["s1"] = up.facts["s1"]
	for i, n := range s.cluster.state.Nodes {
		if n.Name == "s1" {
			s.cluster.state.Nodes[i].Kubelet = newRelease
		}
	}
	w.upgrade = &upgrade{unavailable: 1, drain: true}
	if got := ids(w.contents(s, pure()).actions); strings.Contains(got, "s1/") || strings.Contains(got, snapshotID) || !strings.Contains(got, "a1/drain") {
		t.Errorf("pending %s", got)
	}
	w.upgrade.drain = false
	if got := ids(w.contents(s, pure()).actions); strings.Contains(got, "drain") || !strings.Contains(got, "a1/k3s") {
		t.Errorf("without drains: %s", got)
	}
	if got := ids(w.contents(up, pure()).actions); got != "" {
		t.Errorf("once it is done: %s", got)
	}
}

func TestUpgradesThatAreNotSafe(t *testing.T) {
	old := func(s *sight, name, release string) {
		f := s.facts[name]
		k := f.K3s.Value
		k.Version = release
		f.K3s = host.Known(k)
		s.facts[name] = f
	}
	for name, c := range map[string]struct {
		from, to string
		change   func(*sight)
		code     string
	}{
		"a patch":                 {"v1.36.1+k3s1", newRelease, nil, ""},
		"a minor":                 {oldRelease, newRelease, nil, ""},
		"two minors":              {"v1.34.5+k3s1", newRelease, nil, "k3s-skips-minor"},
		"down":                    {newRelease, oldRelease, nil, "k3s-downgrade"},
		"etcd 3.5 too old":        {"v1.33.4+k3s1", "v1.34.5+k3s1", nil, "k3s-etcd-step"},
		"etcd 3.5.26":             {"v1.33.7+k3s3", "v1.34.5+k3s1", nil, ""},
		"an agent far behind":     {oldRelease, newRelease, func(s *sight) { old(s, "a1", "v1.32.9+k3s1") }, "k3s-skew"},
		"a server is not reached": {oldRelease, newRelease, func(s *sight) { delete(s.facts, "s2"); s.unreached["s2"] = errors.New("no") }, "etcd-quorum"},
		"a server is not Ready": {oldRelease, newRelease, func(s *sight) {
			for i, n := range s.cluster.state.Nodes {
				if n.Name == "s3" {
					s.cluster.state.Nodes[i].Ready = false
				}
			}
		}, "etcd-quorum"},
	} {
		w, s := behind(t, 3, 1, c.from, c.to)
		if c.change != nil {
			c.change(&s)
		}
		w.upgrade = &upgrade{unavailable: 1, drain: true}
		b := w.contents(s, pure())
		blocks := ""
		for _, f := range b.findings {
			if f.Severity == diag.Blocks {
				blocks = string(f.Code)
			}
		}
		if blocks != c.code {
			t.Errorf("%s: blocked by %q, want %q", name, blocks, c.code)
		}
		if c.code != "" && strings.Contains(ids(b.actions), "/drain") && b.out[w.lead(s).Name] {
			t.Errorf("%s: planned all the same: %s", name, ids(b.actions))
		}
	}
}
