package bootstrap

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/inventory"
	"github.com/gpuctl/gpuctl/internal/kube"
)

// leaverOf is a node of a settled cluster that is to leave.
func leaverOf(w wanted, s sight, name string) leaver {
	l := leaver{name: name, password: true}
	l.machine, l.listed = w.config.Inventory().Find(name)
	l.node, l.joined = s.cluster.state.Node(name)
	return l
}

func ids(actions []plan.Action) string {
	var out []string
	for _, a := range actions {
		out = append(out, a.ID)
	}
	return strings.Join(out, " ")
}

func TestHowANodeLeaves(t *testing.T) {
	w := clusterOf(t, "server-1", "gpu-1")
	unreached := errors.New("no route")
	for _, tc := range []struct {
		name   string
		change func(*sight, *leaver, *RemoveOptions)
		want   string // IDs of actions, or a part of the reason why it stays
	}{
		{"alive", func(*sight, *leaver, *RemoveOptions) {}, "gpu-1/drain gpu-1/node-delete gpu-1/k3s-reset"},
		{"only its machine is left", func(s *sight, l *leaver, _ *RemoveOptions) { l.joined, l.password, l.node = false, false, kube.Node{} }, "gpu-1/k3s-reset"},
		{"only its password is left, on a machine that is clean", func(s *sight, l *leaver, _ *RemoveOptions) {
			l.joined, l.node = false, kube.Node{}
			s.facts["gpu-1"] = fresh(2, 1)
		}, "gpu-1/node-delete"},
		{"never joined, another k3s on the machine", func(s *sight, l *leaver, _ *RemoveOptions) {
			l.joined, l.password, l.node = false, false, kube.Node{}
			f := s.facts["gpu-1"]
			f.Files = host.Known(map[string]host.File{})
			s.facts["gpu-1"] = f
		}, ""},
		{"not reached", func(s *sight, l *leaver, _ *RemoveOptions) {
			delete(s.facts, "gpu-1")
			s.unreached["gpu-1"], l.node.Ready = unreached, false
		}, "say --gone"},
		{"not reached and Ready, called gone", func(s *sight, l *leaver, o *RemoveOptions) {
			delete(s.facts, "gpu-1")
			s.unreached["gpu-1"], o.Gone = unreached, true
		}, "its node is Ready"},
		{"gone", func(s *sight, l *leaver, o *RemoveOptions) {
			delete(s.facts, "gpu-1")
			s.unreached["gpu-1"], l.node.Ready, o.Gone = unreached, false, true
		}, "gpu-1/node-delete"},
		{"called gone, but it answers", func(s *sight, l *leaver, o *RemoveOptions) { l.node.Ready, o.Gone = false, true }, "gpu-1/node-delete gpu-1/k3s-reset"},
		{"unlisted and gone", func(s *sight, l *leaver, o *RemoveOptions) {
			delete(s.facts, "gpu-1")
			l.listed, l.machine, l.node.Ready, o.Gone = false, inventory.Machine{}, false, true
		}, "gpu-1/node-delete"},
		{"unlisted", func(s *sight, l *leaver, o *RemoveOptions) {
			delete(s.facts, "gpu-1")
			l.listed, l.machine, l.node.Ready = false, inventory.Machine{}, false
		}, "say --gone"},
		{"nobody knows it", func(s *sight, l *leaver, o *RemoveOptions) { *l = leaver{name: "gpu-1"} }, "is not a node"},
		{"a server", func(s *sight, l *leaver, o *RemoveOptions) { l.node.Server = true }, "gpuctl reset"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := settledSight(t, w, 0, 2)
			l, o := leaverOf(w, s, "gpu-1"), RemoveOptions{}
			tc.change(&s, &l, &o)
			actions, found, err := w.removeActions(l, s, pure(), o)
			if len(found) > 0 {
				t.Errorf("findings %v", found)
			}
			if err != nil {
				if !strings.Contains(err.Error(), tc.want) || len(actions) > 0 {
					t.Errorf("%v, actions %s", err, ids(actions))
				}
				return
			}
			if ids(actions) != tc.want {
				t.Errorf("actions %q, want %q", ids(actions), tc.want)
			}
			for i, a := range actions {
				if a.Consent == "" || (i > 0 && strings.Join(a.Needs, " ") != actions[i-1].ID) {
					t.Errorf("%s: consent %q, needs %v", a.ID, a.Consent, a.Needs)
				}
			}
		})
	}
}

func TestPodsInTheWayAreNamedAndNothingIsPlanned(t *testing.T) {
	w := clusterOf(t, "server-1", "gpu-1")
	s := settledSight(t, w, 0, 2)
	l := leaverOf(w, s, "gpu-1")
	l.blockers = []kube.Blocker{{Pod: "default/train-by-hand", Reason: kube.NoController}, {Pod: "team-a/notebook-0", Reason: kube.LocalData}}
	actions, found, err := w.removeActions(l, s, pure(), RemoveOptions{})
	if err != nil || len(actions) > 0 || len(found) != 2 || !diag.AnyBlocks(found) {
		t.Fatalf("%v, %d actions, %v", err, len(actions), found)
	}
	if f := found[0]; f.Code != "drain-blocked" || f.Machine != "gpu-1" || !strings.Contains(f.Evidence, "default/train-by-hand") || !strings.Contains(f.Evidence, "no controller") {
		t.Errorf("%+v", f)
	}
}

func TestRemovedAreThoseWithWhichNothingWentWrong(t *testing.T) {
	ended := []OutcomeView{
		{ActionView: ActionView{ID: "a/drain", Machine: "a"}, Status: "cut-off"},
		{ActionView: ActionView{ID: "a/drain", Machine: "a"}, Status: "done"},
		{ActionView: ActionView{ID: "b/drain", Machine: "b"}, Status: "failed"},
		{ActionView: ActionView{ID: "b/node-delete", Machine: "b"}, Status: "blocked"},
	}
	got := removed([]string{"a", "b", "c", "d"}, map[string]bool{"c": true}, ended)
	if strings.Join(got, " ") != "a d" {
		t.Errorf("removed %v", got)
	}
}

func TestWhichNodeMayBeReplaced(t *testing.T) {
	m := inventory.Machine{Name: "gpu-1", Role: inventory.Agent, Host: "203.0.113.2"}
	back, same := fresh(2, 1), fresh(2, 1)
	same.K3s = host.Known(host.K3s{Units: map[string]host.Unit{"k3s-agent": {Active: "active"}}})
	waits := fresh(2, 1)
	waits.K3s = host.Known(host.K3s{Units: map[string]host.Unit{"k3s-agent": {Active: "activating"}}})
	for _, tc := range []struct {
		name   string
		facts  host.Facts
		node   kube.Node
		joined bool
		stays  string
	}{
		{"rebuilt, the node is not Ready", back, kube.Node{InternalIP: "10.0.0.2", Reason: "kubelet stopped"}, true, ""},
		{"rebuilt a moment ago", back, kube.Node{Ready: true, InternalIP: "10.0.0.2"}, true, ""},
		{"waits with its password rejected", waits, kube.Node{Ready: true, InternalIP: "10.0.0.2"}, true, ""},
		{"only a password is left", back, kube.Node{}, false, ""},
		{"alive", same, kube.Node{Ready: true, InternalIP: "10.0.0.2"}, true, "nothing to replace"},
		{"another machine is alive under the name", back, kube.Node{Ready: true, InternalIP: "10.0.0.99"}, true, "another machine runs"},
		{"a server, gone", back, kube.Node{Server: true, Reason: "kubelet stopped"}, true, ""},
	} {
		reason, err := replaceable(m, tc.facts, tc.node, tc.joined)
		switch {
		case tc.stays == "" && (err != nil || reason == ""):
			t.Errorf("%s: %q %v", tc.name, reason, err)
		case tc.stays != "" && (err == nil || !strings.Contains(err.Error(), tc.stays)):
			t.Errorf("%s: %q %v", tc.name, reason, err)
		}
	}
}

func TestReapableAreThoseThatDoNotAnswer(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	lost := []kube.Node{{Name: "dead", Since: now.Add(-time.Hour)}, {Name: "answers", Since: now.Add(-time.Hour)}, {Name: "back", Since: now.Add(-time.Hour)}}
	s := sight{facts: map[string]host.Facts{"answers": fresh(1, 1)}}
	s.cluster.state.Nodes = []kube.Node{lost[0], lost[1], {Name: "back", Ready: true}}
	dead, alive := reapable(lost, s, now)
	if strings.Join(dead, " ") != "dead" || len(alive) != 1 || !strings.Contains(alive[0].Error(), "answers stays") || !strings.Contains(alive[0].Error(), "1h0m0s") {
		t.Errorf("dead %v, alive %v", dead, alive)
	}
}

func TestANodeDeletedUnderARunningAgentComesBack(t *testing.T) {
	w := clusterOf(t, "server-1", "gpu-1")
	s := settledSight(t, w, 0, 2)
	s.cluster.state.Nodes = s.cluster.state.Nodes[:1]
	b := w.contents(s, pure())
	if ids(b.actions) != "gpu-1/k3s gpu-1/node gpu-1/smoke cluster/gpu-ready" {
		t.Fatalf("pending:\n%s", render(b))
	}
	if a := b.actions[0]; a.Title != "restart k3s (agent)" || !strings.Contains(a.Reason, "it was deleted") {
		t.Errorf("%s because %s", a.Title, a.Reason)
	}
	s.cluster.state = kube.State{NoAPI: "away"} // what is not known is not repaired
	for _, a := range w.contents(s, pure()).actions {
		if a.ID == "gpu-1/k3s" {
			t.Errorf("restarted without an API: %s", a.Reason)
		}
	}
}

func TestAnUnlistedNodeIsReportedAndLeftAlone(t *testing.T) {
	w := clusterOf(t, "server-1", "gpu-1")
	s := settledSight(t, w, 0, 2)
	s.cluster.state.Nodes = append(s.cluster.state.Nodes, kube.Node{Name: "old"})
	w.machines = w.machines[:1] // as --nodes does: gpu-1 stays listed
	b := w.contents(s, pure())
	if len(b.actions) > 0 || len(b.findings) != 1 {
		t.Fatalf("%s", render(b))
	}
	if f := b.findings[0]; f.Code != "node-unlisted" || f.Machine != "old" || f.Severity != diag.Informs {
		t.Errorf("%+v", f)
	}
}

func TestNodeListPutsFileAndClusterSideBySide(t *testing.T) {
	w := clusterOf(t, "server-1", "gpu-1", "gpu-2")
	since := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	state := kube.State{Nodes: []kube.Node{{Name: "gpu-1", Since: since, Cordoned: true}, {Name: "old"}, {Name: "server-1", Ready: true}}}
	views := []NodeView{{Name: "gpu-1", Role: "agent", Why: "kubelet stopped"}, {Name: "old", Unlisted: true}, {Name: "server-1", Role: "server", Ready: true}}
	var got []string
	entries := nodeEntries(w.machines, state, views)
	for _, e := range entries {
		got = append(got, e.Name+"="+string(e.State))
	}
	if strings.Join(got, " ") != "server-1=ready gpu-1=not-ready gpu-2=missing old=unlisted" {
		t.Errorf("%v", got)
	}
	if e := entries[1]; !e.Cordoned || e.NotReadySince == nil || !e.NotReadySince.Equal(since) || e.Host != "203.0.113.2" {
		t.Errorf("%+v", e)
	}
	for _, e := range nodeEntries(w.machines, kube.State{NoAPI: "away"}, nil) {
		if e.State != NodeUnknown {
			t.Errorf("%s is %s without an API", e.Name, e.State)
		}
	}
}
