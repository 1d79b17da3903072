package bootstrap

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/bootstrap/k3s"
	"github.com/gpuctl/gpuctl/internal/diag"
)

const idOfOurs, idOfOthers = "ours5555", "others55"

// bears gives a machine the id of a cluster.
func bears(s sight, machine, id string) {
	f := s.facts[machine]
	files := map[string]host.File{}
	for path, file := range f.Files.Value {
		files[path] = file
	}
	files[k3s.ClusterFile] = host.File{Kind: "file", Mode: "644", Hash: host.KeyedHash("key", []byte(id+"\n"))}
	f.Files = host.Known(files)
	s.facts[machine] = f
}

func TestWhichClusterItIs(t *testing.T) {
	for name, c := range map[string]struct {
		pinned, server, agent string
		running               bool
		want                  string
	}{
		"the first contact with a new cluster":         {"", "", "", false, "fresh555"},
		"a colleague's first contact":                  {"", idOfOurs, "", true, idOfOurs},
		"what a colleague began":                       {"", "", "", false, idOfOthers},
		"our own":                                      {idOfOurs, idOfOurs, idOfOurs, true, idOfOurs},
		"ours, made before there were ids":             {"", "", "", true, "fresh555"},
		"ours, whose server lost the file":             {idOfOurs, "", "", true, idOfOurs},
		"ours, whose server was rebuilt":               {idOfOurs, "", idOfOurs, false, idOfOurs},
		"another cluster under the name of an old one": {idOfOurs, "", "", false, "fresh555"},
	} {
		w := clusterOf(t, "server-1", "gpu-1")
		w.pinned, w.fresh = c.pinned, "fresh555"
		s := sightOf(w, 0, 1)
		if c.running {
			f := s.facts["server-1"]
			f.K3s = host.Known(host.K3s{Version: "v1.36.3+k3s1"})
			s.facts["server-1"] = f
		}
		if c.server != "" {
			s.credentials = &k3s.Credentials{ClusterID: c.server}
		}
		if c.agent != "" {
			bears(s, "gpu-1", c.agent)
		}
		if c.want == idOfOthers {
			s.borne = idOfOthers
		}
		if id := w.clusterID(s); id != c.want {
			t.Errorf("%s: %s, want %s", name, id, c.want)
		}
	}
}

func TestEveryMachineBearsTheClustersID(t *testing.T) {
	w := clusterOf(t, "server-1", "gpu-1")
	w.pinned = idOfOurs
	s := settledSight(t, w, 0, 0)
	if b := w.contents(s, pure()); len(b.actions)+len(b.findings) > 0 {
		t.Errorf("with the id on all: %s", render(b))
	}
	f := s.facts["gpu-1"]
	delete(f.Files.Value, k3s.ClusterFile)
	b := w.contents(s, pure())
	if len(b.actions) != 1 || b.actions[0].ID != "gpu-1/k3s" || b.actions[0].Reason != k3s.ClusterFile+" is absent" || strings.Contains(b.actions[0].Title, "restart") {
		t.Errorf("without it: %s", render(b))
	}
}

func TestAMachineOfAnotherClusterIsLeftAlone(t *testing.T) {
	w := clusterOf(t, "server-1", "gpu-1", "gpu-2")
	w.pinned = idOfOurs
	s := settledSight(t, w, 0, 0, 0)
	bears(s, "gpu-2", idOfOthers)
	b := w.contents(s, pure())
	if len(b.actions) > 0 || len(b.findings) != 1 || b.findings[0].Code != "cluster-other" || b.findings[0].Machine != "gpu-2" || !b.out["gpu-2"] {
		t.Errorf("%s\n%+v", render(b), b.findings)
	}
	var blocked *BlockedError
	if err := w.notOurs(s, []string{"gpu-2"}); !errors.As(err, &blocked) || blocked.Findings[0].Code != "cluster-other" {
		t.Errorf("a reset of it: %v", err)
	}
	if err := w.notOurs(s, []string{"server-1", "gpu-1"}); err != nil {
		t.Errorf("a reset of the others: %v", err)
	}
}

func TestAServerOfAnotherClusterStopsAll(t *testing.T) {
	w := clusterOf(t, "server-1", "gpu-1")
	w.pinned = idOfOurs
	why := w.otherCluster(k3s.Credentials{ClusterID: idOfOthers})
	if !strings.Contains(why, idOfOurs) || !strings.Contains(why, idOfOthers) {
		t.Fatalf("%q", why)
	}
	for _, c := range []k3s.Credentials{{}, {ClusterID: idOfOurs}} {
		if why := w.otherCluster(c); why != "" {
			t.Errorf("%+v: %s", c, why)
		}
	}
	s := sightOf(w, 0, 1)
	s.other = why
	b := w.contents(s, pure())
	if len(b.actions) > 0 || !diag.AnyBlocks(b.findings) || !b.out["server-1"] {
		t.Errorf("%s", render(b))
	}
	if err := w.notOurs(s, nil); err == nil {
		t.Error("a reset of it would go on")
	}
}

func TestTheServerKeepsTheHostKeysOfAll(t *testing.T) {
	w := clusterOf(t, "server-1", "gpu-1", "gpu-2")
	s := settledSight(t, w, 0, 0, 0)
	s.hostKeys = map[string]string{"server-1": "203.0.113.1 ssh-ed25519 AAAA1", "gpu-1": "203.0.113.2 ssh-ed25519 AAAA2"}
	s.credentials.KnownHosts = []byte("203.0.113.2 ssh-ed25519 OLD gpu-1\n203.0.113.3 ssh-ed25519 AAAA3 gpu-2\n203.0.113.9 ssh-ed25519 AAAA9 gone\n")
	want := "203.0.113.1 ssh-ed25519 AAAA1 server-1\n203.0.113.2 ssh-ed25519 AAAA2 gpu-1\n203.0.113.3 ssh-ed25519 AAAA3 gpu-2\n"
	if got := string(w.knownHosts(s, w.machines)); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	b := w.contents(s, pure())
	if len(b.actions) != 1 || b.actions[0].ID != k3s.KnownHostsID || b.actions[0].Machine != "" {
		t.Errorf("%s", render(b))
	}
	s.credentials.KnownHosts = []byte(want)
	if b := w.contents(s, pure()); len(b.actions) > 0 {
		t.Errorf("once they are there: %s", render(b))
	}
	s.credentials.KnownHosts, s.laid = nil, []byte(want)
	if b := w.contents(s, pure()); len(b.actions) > 0 {
		t.Errorf("once this run has left them there: %s", render(b))
	}
	s.credentials = nil // k3s has not started, or starts again
	if found := w.keepKnownHosts(s, pure()); len(found) > 0 {
		t.Errorf("without credentials: %s", found[0].Reason)
	}
}

func TestTrustTakesWhatTheServerHas(t *testing.T) {
	e, _ := engineOf(t, unreachable, []string{"server-1", "gpu-1"}, apiNode("server-1", true, time.Hour))
	e.api.known.Kubeconfig = []byte("apiVersion: v1\nkind: Config\nclusters: [{name: default, cluster: {server: 'https://127.0.0.1:6443'}}]\nusers: [{name: default, user: {token: t}}]\ncontexts: [{name: default, context: {cluster: default, user: default}}]\ncurrent-context: default\n")
	e.api.known.ClusterID, e.api.known.KnownHosts = idOfOurs, []byte("203.0.113.2 ssh-ed25519 AAAA2 gpu-1\nnonsense\n")
	r, err := e.Trust(t.Context())
	if err != nil || r.ID != idOfOurs || len(r.KnownHosts) != 1 || r.KnownHosts["gpu-1"] != "203.0.113.2 ssh-ed25519 AAAA2" || !strings.Contains(string(r.Kubeconfig), "203.0.113.1:6443") {
		t.Errorf("%+v, %v: %s", r, err, r.Kubeconfig)
	}
}
