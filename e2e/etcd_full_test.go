//go:build lab && full

package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/e2e/lab"
	"github.com/gpuctl/gpuctl/e2e/lab/machine"
	"github.com/gpuctl/gpuctl/e2e/scene"
)

// TestFullControlPlane is the care of three servers and an agent: a snapshot
// and the way back to it, new certificates, new tokens, another release of k3s.
func TestFullControlPlane(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "cp")
	m := s.Machines(machine.Spec{Name: "a"}, machine.Spec{Name: "b"}, machine.Spec{Name: "c"}, machine.Spec{Name: "w"})
	server := map[string]any{"role": "server"}
	s.Write(scene.Cluster{Members: []scene.Member{
		{Machine: m[0], GPUs: -1}, {Machine: m[1], GPUs: -1, More: server}, {Machine: m[2], GPUs: -1, More: server}, {Machine: m[3], GPUs: -1},
	}})
	s.Must(0, "apply")

	restored(t, s, m)
	newCertificates(t, s, m)
	newTokens(t, s, m)
	upgraded(t, s, m)
}

// restored goes back to a snapshot: what came later is gone, what was there is there.
func restored(t *testing.T, s *scene.Scene, m []*machine.Machine) {
	t.Helper()
	s.Exec(m[0], "k3s kubectl create configmap before")
	kept := filepath.Join(s.Dir, "kept.db")
	var saved struct {
		Snapshots []struct{ Name, Server string }
	}
	s.Decode(s.Must(0, "etcd", "snapshot", "save", "mine", "--to", kept, "-o", "json"), &saved)
	if info, err := os.Stat(kept); err != nil || info.Size() < 10_000 || len(saved.Snapshots) != 1 {
		t.Fatalf("the snapshot: %+v, %v", saved, err)
	}
	name := saved.Snapshots[0].Name
	mentions(t, "the list", s.Must(0, "etcd", "snapshot", "list").Stdout, name)
	s.Exec(m[1], "k3s kubectl create configmap after")
	mentions(t, "the question", s.Must(exitFindings, "etcd", "snapshot", "restore", name).Stderr, "datastore")
	s.Must(0, "etcd", "snapshot", "restore", name, "--yes")
	votes(s, m[2], m[:3]...)
	ready(s, m[0], m...)
	if out := s.Exec(m[0], "k3s kubectl get configmaps -o name"); !strings.Contains(out, "/before") || strings.Contains(out, "/after") {
		t.Errorf("after the restore there are: %s", out)
	}
	s.Must(0, "apply")
	s.Must(0, "etcd", "snapshot", "delete", name, "--yes")
	if out := s.Must(0, "etcd", "snapshot", "list").Stdout; strings.Contains(out, name) {
		t.Errorf("it is still listed: %s", out)
	}
}

func newCertificates(t *testing.T, s *scene.Scene, m []*machine.Machine) {
	t.Helper()
	const keys = "sha256sum /var/lib/rancher/k3s/server/tls/client-admin.key /var/lib/rancher/k3s/server/tls/server-ca.key"
	before := strings.Fields(s.Exec(m[1], keys))
	s.Must(0, "certificate", "rotate", "--yes")
	after := strings.Fields(s.Exec(m[1], keys))
	if before[0] == after[0] || before[2] != after[2] {
		t.Errorf("keys before %v, after %v: the administrator's is to be new, the CA's not", before, after)
	}
	ready(s, m[2], m...)
	s.Must(0, "apply")
}

func newTokens(t *testing.T, s *scene.Scene, m []*machine.Machine) {
	t.Helper()
	token := func(of *machine.Machine, file string) string {
		return s.Exec(of, "sed 's/.*://' "+file)
	}
	const data, conf = "/var/lib/rancher/k3s/server/", "/etc/rancher/k3s/"
	server, agent := token(m[0], data+"token"), token(m[3], conf+"gpuctl-agent-token")
	r := s.Must(0, "token", "rotate", "--yes")
	fresh := token(m[0], data+"token")
	for _, of := range m[:3] {
		if now := token(of, data+"token"); now == server || now != fresh {
			t.Errorf("%s has another server token than the rest, or that of before", of.Name)
		}
	}
	now := token(m[3], conf+"gpuctl-agent-token")
	if now == agent || now != token(m[2], data+"agent-token") {
		t.Error("the agent has not the new agent token")
	}
	if strings.Contains(r.Stdout+r.Stderr, fresh) || strings.Contains(r.Stdout+r.Stderr, now) {
		t.Error("a token was shown")
	}
	ready(s, m[1], m...)
	votes(s, m[1], m[:3]...)
	s.Must(0, "apply")
}

// upgraded brings all machines to another release; apply before it leaves them alone.
func upgraded(t *testing.T, s *scene.Scene, m []*machine.Machine) {
	t.Helper()
	if err := s.Lab.ServeNextK3s(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := s.Must(exitFindings, "upgrade", "--to", "v1.36.1+k3s1", "--yes")
	mentions(t, "a minor left out", r.Stdout+r.Stderr, "k3s-skips-minor")
	pod := func() string {
		return s.Exec(m[0], "k3s kubectl -n kube-system get pods -l k8s-app=kube-dns -o jsonpath='{.items[*].status.phase}'")
	}
	ready(s, m[0], m...)
	s.Must(0, "upgrade", "--to", lab.NextK3s, "--yes")
	out := s.Exec(m[0], "k3s kubectl get nodes --no-headers")
	if strings.Count(out, lab.NextK3s) != len(m) || strings.Contains(out, "SchedulingDisabled") {
		t.Errorf("after the upgrade:\n%s", out)
	}
	mentions(t, "the snapshots", s.Must(0, "etcd", "snapshot", "list").Stdout, "before-"+strings.ReplaceAll(lab.NextK3s, "+", "-"))
	mentions(t, "gpuctl.yaml", listed(t, s), lab.NextK3s)
	s.Until(2*time.Minute, "the cluster's DNS", func() string {
		if phase := pod(); !strings.Contains(phase, "Running") {
			return phase
		}
		return ""
	})
	votes(s, m[1], m[:3]...)
	nothingChanges(t, s, s.EndState())
}
