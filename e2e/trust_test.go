//go:build lab

package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/e2e/lab/machine"
	"github.com/gpuctl/gpuctl/e2e/scene"
)

const clusterIDFile = "/etc/rancher/k3s/gpuctl.id"

// colleague takes a cluster over on a second computer that trusts the server's
// key alone and no other, and finds all machines known there.
func colleague(t *testing.T, s *scene.Scene, cluster scene.Cluster) {
	t.Helper()
	server, one := cluster.Members[0].Machine, cluster.Members[1].Machine
	id := s.Exec(server, "cat "+clusterIDFile)
	if other := s.Exec(one, "cat "+clusterIDFile); len(id) < 8 || other != id {
		t.Errorf("the server's id is %q, the agent's %q", id, other)
	}
	if got := s.Exec(server, "stat -c %a,%U /etc/rancher/k3s/gpuctl.known_hosts"); got != "600,root" {
		t.Errorf("the host keys on the server: %s", got)
	}

	pinned := cluster
	pinned.SSH = map[string]any{"hostKeys": "strict"}
	pinned.Members = []scene.Member{{Machine: server, More: map[string]any{"hostKey": s.Exec(server, "cut -d ' ' -f 1,2 /etc/ssh/ssh_host_ed25519_key.pub")}}, cluster.Members[1]}
	writeAs(t, s, pinned, "colleague.yaml")
	s.Write(cluster)
	mine := s.Env
	s.Env = append(s.Env, "XDG_STATE_HOME="+filepath.Join(s.Dir, "colleague"))
	defer func() { s.Env = mine }()

	r := s.Must(exitUnreachable, "-f", "colleague.yaml", "check")
	mentions(t, "what is not trusted", r.Stderr, one.Name)
	var got struct {
		ID       string
		Machines []struct{ Name, Key string }
	}
	s.Decode(s.Must(0, "-f", "colleague.yaml", "trust", "-o", "json"), &got)
	if got.ID != id || len(got.Machines) != 2 || got.Machines[1].Key != "new" {
		t.Errorf("trust took over %+v, want id %s and the agent's key", got, id)
	}
	s.Must(0, "-f", "colleague.yaml", "check")
	r = s.Must(0, "-f", "colleague.yaml", "apply", "--yes")
	mentions(t, "a colleague's apply", r.Stdout, "othing")
	kubeconfig, err := os.ReadFile(filepath.Join(s.Dir, "colleague", "gpuctl", s.Name, "kubeconfig"))
	if err != nil || !strings.Contains(string(kubeconfig), s.Name) {
		t.Errorf("the kubeconfig was not taken over: %v", err)
	}
}

// neverMix holds that a machine, and a server, of another cluster is refused.
func neverMix(t *testing.T, s *scene.Scene, one *machine.Machine) {
	t.Helper()
	id := s.Exec(one, "cat "+clusterIDFile)
	s.Exec(one, "echo another2another2 >"+clusterIDFile)
	r := s.Must(exitFindings, "apply", "--yes")
	mentions(t, "a machine of another cluster", r.Stderr, "cluster-other", one.Name)
	s.Must(exitFindings, "node", "remove", one.Name, "--yes")
	s.Must(exitFindings, "reset", "--nodes", one.Name, "--yes")
	if _, there := s.Nodes()[one.Name]; !there {
		t.Error("it was removed all the same")
	}
	s.Exec(one, "echo "+id+" >"+clusterIDFile)

	known := filepath.Join(s.StateDir(), "cluster-id")
	if err := os.WriteFile(known, []byte("another2another2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{"status"}, {"apply", "--yes"}, {"trust"}, {"reset", "--yes"}} {
		mentions(t, strings.Join(command, " ")+" on the server of another cluster", s.Must(exitFindings, command...).Stderr, "cluster-other")
	}
	if err := os.WriteFile(known, []byte(id+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Must(0, "status")
}

// writeAs writes a cluster's file under another name.
func writeAs(t *testing.T, s *scene.Scene, c scene.Cluster, name string) {
	t.Helper()
	s.Write(c)
	if err := os.Rename(filepath.Join(s.Dir, "gpuctl.yaml"), filepath.Join(s.Dir, name)); err != nil {
		t.Fatal(err)
	}
}
