//go:build lab && full

package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/e2e/lab/machine"
	"github.com/gpuctl/gpuctl/e2e/scene"
)

// TestFullThreeServers is a control plane of three servers: made in one run,
// applied again without a change; one of them lost and replaced while the
// cluster goes on; one removed, by which the agent had joined.
func TestFullThreeServers(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "ha")
	m := s.Machines(machine.Spec{Name: "a"}, machine.Spec{Name: "b"}, machine.Spec{Name: "c"}, machine.Spec{Name: "w"})
	server := map[string]any{"role": "server"}
	file := scene.Cluster{Members: []scene.Member{
		{Machine: m[0], GPUs: -1}, {Machine: m[1], GPUs: -1, More: server}, {Machine: m[2], GPUs: -1, More: server}, {Machine: m[3], GPUs: -1},
	}}

	two := file
	two.Members = []scene.Member{file.Members[0], file.Members[1]}
	s.Write(two)
	mentions(t, "two servers", s.Must(exitFindings, "plan").Stdout, "etcd-even-servers")

	s.Write(file)
	s.Must(0, "apply")
	votes(s, m[0], m[0], m[1], m[2])
	nothingChanges(t, s, s.EndState())

	lost(t, s, m)
	m[0] = s.Machines(machine.Spec{Name: "a"})[0]
	s.Must(0, "node", "replace", m[0].Name, "--yes", "--accept-new-host-key")
	votes(s, m[1], m[0], m[1], m[2])
	ready(s, m[1], m...)

	s.Must(0, "node", "remove", m[1].Name, "--yes")
	votes(s, m[0], m[0], m[2])
	ready(s, m[0], m[0], m[2], m[3])
	if conf := s.Exec(m[3], "grep ^server: /etc/rancher/k3s/config.yaml.d/50-gpuctl.yaml"); strings.Contains(conf, m[1].IP) {
		t.Errorf("the agent still joins by the server that left: %s", conf)
	}
	again := s.Must(0, "apply")
	mentions(t, "two that are left", again.Stdout+again.Stderr, "etcd-even-servers")
}

// lost cuts the power of the first server: the API goes on by the others, and
// no healthy one may be removed.
func lost(t *testing.T, s *scene.Scene, m []*machine.Machine) {
	t.Helper()
	if err := m[0].Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Until(3*time.Minute, "the cluster to see that a server is gone", func() string {
		r := s.Run("node", "list", "-o", "json")
		if r.Code != 0 || !strings.Contains(r.Stdout, `"state": "not-ready"`) {
			return fmt.Sprintf("exit code %d: %s%s", r.Code, r.Stdout, r.Stderr)
		}
		return ""
	})
	ready(s, m[1], m[1], m[2], m[3])
	r := s.Must(exitFindings, "node", "remove", m[1].Name, "--yes")
	mentions(t, "the refusal", r.Stderr, "majority")
	s.Exec(m[1], "k3s kubectl create configmap written-without-the-first")
}

// votes waits until etcd has exactly these servers as voting members.
func votes(s *scene.Scene, by *machine.Machine, want ...*machine.Machine) {
	var names []string
	for _, m := range want {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	s.Until(2*time.Minute, "the members of etcd", func() string {
		out, err := s.TryExec(by, `curl -sk --max-time 10 -u "server:$(sed 's/.*://' /var/lib/rancher/k3s/server/token)" https://127.0.0.1:6443/db/info`)
		if err != nil {
			return err.Error()
		}
		var info struct {
			Members []struct {
				Name      string
				IsLearner bool
			}
		}
		s.Decode(scene.Result{Stdout: out}, &info)
		var have []string
		for _, m := range info.Members {
			if !m.IsLearner && len(m.Name) > 9 {
				have = append(have, m.Name[:len(m.Name)-9])
			}
		}
		slices.Sort(have)
		if !slices.Equal(have, names) || len(info.Members) != len(names) {
			return out
		}
		return ""
	})
}

// ready waits until exactly these machines' nodes are Ready.
func ready(s *scene.Scene, by *machine.Machine, want ...*machine.Machine) {
	s.Until(3*time.Minute, "the nodes", func() string {
		out, err := s.TryExec(by, "k3s kubectl get nodes --no-headers")
		if err != nil {
			return err.Error()
		}
		for _, m := range want {
			if !slices.ContainsFunc(strings.Split(out, "\n"), func(line string) bool {
				f := strings.Fields(line)
				return len(f) > 1 && f[0] == m.Name && f[1] == "Ready"
			}) {
				return out
			}
		}
		return ""
	})
}
