package bootstrap

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/charts"
	"github.com/gpuctl/gpuctl/internal/config"
	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/kube"
)

// serversOf makes a wish for servers s1, s2, ... and agents a1, a2, ...
func serversOf(t *testing.T, servers, agents int, kubernetes string) wanted {
	t.Helper()
	set, err := charts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	text := "apiVersion: gpuctl.dev/v1alpha1\nkind: Cluster\nmetadata: {name: test}\nspec:\n  kubernetes: {" + kubernetes + "}\n  machines:\n"
	for i := range servers + agents {
		name, role := fmt.Sprintf("s%d", i+1), "server"
		if i >= servers {
			name, role = fmt.Sprintf("a%d", i-servers+1), "agent"
		}
		text += fmt.Sprintf("  - {name: %s, host: 203.0.113.%d, role: %s}\n", name, i+1, role)
	}
	c, err := config.Parse([]byte(text), "gpuctl.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return wanted{config: c, set: set, machines: c.Inventory().Machines, key: "key", owner: "me"}
}

// settledServers is a sight of a cluster in which everything is as wanted.
func settledServers(t *testing.T, w wanted) sight {
	t.Helper()
	s := settledSight(t, w, make([]int, len(w.machines))...)
	for i, n := range s.cluster.state.Nodes {
		s.cluster.state.Nodes[i].Server = strings.HasPrefix(n.Name, "s")
		s.cluster.state.Nodes[i].Kubelet = w.kubernetes()
	}
	return s
}

func needsOf(b book, id string) string {
	for _, a := range b.actions {
		if a.ID == id {
			return strings.Join(a.Needs, " ")
		}
	}
	return "no such action"
}

func TestThreeServersAreMadeOneAfterTheOther(t *testing.T) {
	w := serversOf(t, 3, 1, "")
	s := sightOf(w, 0, 0, 0, 0)
	b := w.contents(s, pure())
	golden(t, "three-servers", render(b))
	for id, needs := range map[string][]string{
		"s2/k3s": {"s1/k3s", "s1/node"}, "s3/k3s": {"s1/k3s", "s2/k3s", "s2/node"}, "a1/k3s": {"s1/k3s"},
	} {
		for _, need := range needs {
			if got := needsOf(b, id); !strings.Contains(" "+got+" ", " "+need+" ") {
				t.Errorf("%s needs %s, want %s", id, got, need)
			}
		}
	}
	for name, join := range map[string]string{"s1": "", "s2": "https://10.0.0.1:6443", "a1": "https://10.0.0.1:6443"} {
		m, _ := w.config.Inventory().Find(name)
		if got := w.k3s(m, s, b.network).ServerURL; got != join {
			t.Errorf("%s joins %q, want %q", name, got, join)
		}
	}
	if again := w.contents(settledServers(t, w), pure()); len(again.actions) > 0 {
		t.Errorf("pending once all is as wanted:\n%s", render(again))
	}
}

func TestWhoHasTheCluster(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*sight)
		lead   string
		join   string // of s1
	}{
		"all run":                        {func(*sight) {}, "s1", ""},
		"the first is gone":              {func(s *sight) { delete(s.facts, "s1"); s.unreached["s1"] = errors.New("no") }, "s2", "https://10.0.0.2:6443"},
		"the first is rebuilt":           {func(s *sight) { s.facts["s1"] = fresh(1, 0) }, "s2", "https://10.0.0.2:6443"},
		"the first is stopped":           {func(s *sight) { stop(s, "s1") }, "s2", ""},
		"all are stopped":                {func(s *sight) { stop(s, "s1"); stop(s, "s2"); stop(s, "s3") }, "s1", ""},
		"new, and one is not reached":    {func(s *sight) { renew(s); delete(s.facts, "s3"); s.unreached["s3"] = errors.New("no") }, "s3", ""},
		"new":                            {renew, "s1", ""},
		"new, but the second has it all": {func(s *sight) { f := s.facts["s2"]; renew(s); s.facts["s2"] = f }, "s2", "https://10.0.0.2:6443"},
	} {
		w := serversOf(t, 3, 1, "")
		s := settledServers(t, w)
		c.change(&s)
		m, _ := w.config.Inventory().Find("s1")
		join := w.joinURL(m, s, w.network(s))
		if lead := w.lead(s).Name; lead != c.lead || join != c.join && s.unreached["s3"] == nil {
			t.Errorf("%s: %s has it, s1 joins %q; want %s, %q", name, lead, join, c.lead, c.join)
		}
	}
}

func renew(s *sight) {
	for i, name := range []string{"s1", "s2", "s3"} {
		s.facts[name] = fresh(i+1, 0)
	}
}

func stop(s *sight, name string) {
	f := s.facts[name]
	k := f.K3s.Value
	k.Units = map[string]host.Unit{"k3s": {Active: "inactive", Sub: "dead", Enabled: "enabled"}}
	f.K3s = host.Known(k)
	s.facts[name] = f
}

func TestALostServerStopsNobody(t *testing.T) {
	w := serversOf(t, 3, 1, "")
	s := settledServers(t, w)
	delete(s.facts, "s1")
	s.unreached["s1"] = errors.New("no")
	s.facts["a1"] = fresh(4, 0)
	b := w.contents(s, pure())
	if b.out["s2"] || b.out["a1"] || !b.out["s1"] || !strings.Contains(ids(b.actions), "a1/k3s") || strings.Contains(ids(b.actions), "s2/") {
		t.Errorf("out %v, actions %s", b.out, ids(b.actions))
	}
}

func TestALoadBalancerIsWhereAgentsJoin(t *testing.T) {
	w := serversOf(t, 3, 1, "endpoint: k8s.example.com")
	s := sightOf(w, 0, 0, 0, 0)
	net := w.network(s)
	for name, join := range map[string]string{"s1": "", "s2": "https://10.0.0.1:6443", "a1": "https://k8s.example.com:6443"} {
		m, _ := w.config.Inventory().Find(name)
		want := w.k3s(m, s, net)
		if want.ServerURL != join || want.Server() && !slices.Contains(want.TLSSANs, "k8s.example.com") {
			t.Errorf("%s: %q, %v", name, want.ServerURL, want.TLSSANs)
		}
	}
}

func TestServerFindings(t *testing.T) {
	trip := func(d time.Duration) func(*sight) {
		return func(s *sight) {
			s.pairs = []Pair{{From: "s1", To: "s2", Within: d / 2}, {From: "a1", To: "s1", Within: time.Second}}
		}
	}
	public := func(s *sight) {
		for i, name := range []string{"s1", "s2", "s3", "a1"} {
			f := s.facts[name]
			f.Network = host.Known(host.Network{Default4: "eth0", Interfaces: []host.Interface{iface("eth0", fmt.Sprintf("203.0.113.%d/24", i+1))}})
			s.facts[name] = f
		}
	}
	for name, c := range map[string]struct {
		servers int
		fresh   bool
		change  func(*sight)
		want    string // code@machine severity
	}{
		"three in one network":   {3, true, nil, ""},
		"one":                    {1, true, nil, ""},
		"two that are to be":     {2, true, nil, "etcd-even-servers@s1 blocks, etcd-even-servers@s2 blocks"},
		"two that are left":      {2, false, nil, "etcd-even-servers@s1 warns"},
		"a second one joins":     {2, false, func(s *sight) { s.facts["s2"] = fresh(2, 0) }, "etcd-even-servers@s2 blocks"},
		"a fourth one joins":     {4, false, func(s *sight) { s.facts["s4"] = fresh(4, 0) }, "etcd-even-servers@s4 blocks"},
		"a millisecond apart":    {3, false, trip(time.Millisecond), ""},
		"in the next country":    {3, false, trip(80 * time.Millisecond), "etcd-over-wan@s2 warns"},
		"on the other side":      {3, false, trip(300 * time.Millisecond), "etcd-over-wan@s2 blocks"},
		"public addresses alone": {3, true, public, "etcd-over-wan@s1 blocks, etcd-over-wan@s2 blocks, etcd-over-wan@s3 blocks"},
	} {
		w := serversOf(t, c.servers, 1, "")
		s := sightOf(w, make([]int, c.servers+1)...)
		if !c.fresh {
			s = settledServers(t, w)
		}
		if c.change != nil {
			c.change(&s)
		}
		var got []string
		if far := strings.Contains(c.want, string(codeOverWAN)); far != strings.Contains(codesIn(w.serverFindings(s, w.network(s))), string(codeOverWAN)) {
			t.Errorf("%s: too far is %v", name, !far)
		}
		for _, f := range w.serverFindings(s, w.network(s)) {
			got = append(got, fmt.Sprintf("%s@%s %s", f.Code, f.Machine, f.Severity))
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestServersLeaveWithAMajority(t *testing.T) {
	w := serversOf(t, 3, 1, "")
	s := settledServers(t, w)
	turns, err := w.leaving([]string{"s1", "a1"}, s)
	if err != nil || strings.Join(turns, " ") != "a1 s1" {
		t.Fatalf("%v %v", turns, err)
	}
	if f := w.fewServers([]string{"s1"}, s); len(f) != 1 || f[0].Code != codeEvenServers || f[0].Severity != diag.Warns {
		t.Errorf("two that are left: %+v", f)
	}
	l := leaverOf(w, s, "s1")
	actions, _, err := w.removeActions(l, s, pure(), RemoveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all := w.inTurnOf(l, actions, nil, s, []string{"s1"}, pure())
	if got := ids(all); got != "s2/k3s s3/k3s a1/k3s s1/drain s1/k3s-leaves s1/node-delete s1/k3s-reset" {
		t.Errorf("actions %s", got)
	}
	if needs := needsOf(book{actions: all}, "s3/k3s"); !strings.Contains(needs, "s2/k3s") {
		t.Errorf("servers start again at once: s3 needs %s", needs)
	}
	s.cluster.state.Nodes[slices.IndexFunc(s.cluster.state.Nodes, func(n kube.Node) bool { return n.Name == "s3" })].Ready = false
	var quorum *kube.QuorumError
	if _, err := w.leaving([]string{"s1"}, s); !errors.As(err, &quorum) {
		t.Errorf("a healthy one leaves with another away: %v", err)
	}
	if turns, err := w.leaving([]string{"s3"}, s); err != nil || len(turns) != 1 {
		t.Errorf("the dead one: %v", err)
	}
	one := serversOf(t, 1, 1, "")
	alone := settledServers(t, one)
	var stays *StaysError
	if _, _, err := one.removeActions(leaverOf(one, alone, "s1"), alone, pure(), RemoveOptions{}); !errors.As(err, &stays) {
		t.Errorf("the only server leaves: %v", err)
	}
}

func TestAServerIsReplaced(t *testing.T) {
	w := serversOf(t, 3, 0, "")
	s := settledServers(t, w)
	forget := []plan.Action{forgetNode("s1", "x", pure())}
	m, _ := w.config.Inventory().Find("s1")
	actions, err := w.replaceServer(m, s, forget, "x", true, pure())
	if got := ids(actions); err != nil || got != "s1/node-delete s1/k3s-reset" {
		t.Errorf("%s %v", got, err)
	}
	s.facts["s1"] = fresh(1, 0)
	if actions, err = w.replaceServer(m, s, forget, "x", true, pure()); err != nil || ids(actions) != "s1/node-delete" {
		t.Errorf("a clean machine: %s %v", ids(actions), err)
	}
	s.cluster.state.Nodes[2].Ready = false
	if _, err = w.replaceServer(m, s, forget, "x", true, pure()); err == nil {
		t.Error("replaced with another server away")
	}
}
