//go:build lab

package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/e2e/lab"
	"github.com/gpuctl/gpuctl/e2e/lab/gpu"
	"github.com/gpuctl/gpuctl/e2e/lab/machine"
	"github.com/gpuctl/gpuctl/e2e/scene"
)

// TestServerAndTwoAgents: agents with GPUs come up closed to work, open when
// their GPUs are proven, and then a user's pod gets exactly what it asked for.
func TestServerAndTwoAgents(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "three")
	m := s.Machines(machine.Spec{Name: "server"}, machine.Spec{Name: "one", GPU: scene.H100(1)}, machine.Spec{Name: "two", GPU: scene.H100(2)})
	s.Write(scene.Cluster{Members: []scene.Member{{Machine: m[0]}, {Machine: m[1], GPUs: 1}, {Machine: m[2], GPUs: 2}}})

	s.Must(0, "apply", "--skip-smoke")
	nodes := s.Nodes()
	for _, agent := range m[1:] {
		if !nodes[agent.Name].Tainted(unproven) {
			t.Errorf("agent %s is open before it is proven: %+v", agent.Name, nodes[agent.Name].Spec)
		}
	}
	if nodes[m[0].Name].Tainted(unproven) {
		t.Error("the server is tainted")
	}

	s.Must(0, "apply")
	proven(t, s, map[string]int{m[0].Name: 0, m[1].Name: 1, m[2].Name: 2})
	nothingChanges(t, s, s.EndState())

	log := s.Pod(m[2].Name, gpu.Smoke, 1, "nvidia-smi -L && /cuda-samples/vectorAdd")
	if n := strings.Count(log, "(UUID: GPU-"); n != 1 {
		t.Errorf("a pod that asked for one GPU of %s sees %d:\n%s", m[2].Name, n, log)
	}
	mentions(t, "the user's pod", log, "Test PASSED", "H100")
	if uuids := strings.Join(gpu.H100(2).For(m[2].Name).UUIDs(), " "); !strings.Contains(uuids, uuid(log)) {
		t.Errorf("the pod's GPU %s is none of %s's: %s", uuid(log), m[2].Name, uuids)
	}
}

// uuid is the first GPU's of what nvidia-smi -L printed.
func uuid(log string) string {
	_, rest, _ := strings.Cut(log, "(UUID: ")
	id, _, _ := strings.Cut(rest, ")")
	return id
}

// TestBehindAJumpHost: the machine is reached through another one alone, and
// only by SSH.
func TestBehindAJumpHost(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "jump")
	m := s.Machines(
		machine.Spec{Name: "bastion", Networks: []string{lab.MainNetwork, "private"}, Reach: machine.ReachSSH},
		machine.Spec{Name: "gpu", Networks: []string{"private"}, Reach: machine.ReachNone, GPU: scene.H100(1)},
	)
	bastion, hidden := m[0], m[1]
	s.Write(scene.Cluster{
		Members: []scene.Member{{Machine: hidden, GPUs: 1}},
		SSH:     map[string]any{"jump": fmt.Sprintf("ubuntu@%s:%d", bastion.IP, bastion.Port)},
	})
	s.Agent()
	before := s.Logins(bastion)
	s.Must(0, "bootstrap")
	if n := s.Logins(bastion) - before; n != 1 {
		t.Errorf("bootstrap logged in %d times on the jump host; want once", n)
	}
	proven(t, s, map[string]int{hidden.Name: 1})
	var result struct {
		Passed bool
		Nodes  []struct {
			Steps []struct {
				Name, Detail string
				Seconds      float64
			}
		}
	}
	s.Decode(s.Must(0, "smoke", "--junit", "smoke.xml", "-o", "json"), &result)
	if !result.Passed || len(result.Nodes) != 1 || len(result.Nodes[0].Steps) != 3 {
		t.Fatalf("smoke through the jump host: %+v", result)
	}
	for _, step := range result.Nodes[0].Steps[1:] {
		if step.Seconds <= 0 || step.Detail == "" {
			t.Errorf("step %+v says neither its time nor what it showed", step)
		}
	}
	if xml, err := os.ReadFile(filepath.Join(s.Dir, "smoke.xml")); err != nil || !strings.Contains(string(xml), `name="`+hidden.Name+`" tests="4" failures="0" skipped="0"`) {
		t.Errorf("%v: %s", err, xml)
	}
	if out := s.Must(0, "ssh", hidden.Name, "--", "hostname").Stdout; strings.TrimSpace(out) != hidden.Name {
		t.Errorf("gpuctl ssh: hostname is %q, want %s", out, hidden.Name)
	}
}

// TestAnAgentDiesInMidRun: the others are proven all the same, the run says who
// is gone, and the next one heals it.
func TestAnAgentDiesInMidRun(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "dies")
	m := s.Machines(machine.Spec{Name: "server"}, machine.Spec{Name: "lives", GPU: scene.H100(1)}, machine.Spec{Name: "dies", GPU: scene.H100(1)})
	lives, dies := m[1], m[2]
	s.Write(scene.Cluster{Members: []scene.Member{{Machine: m[0]}, {Machine: lives, GPUs: 1}, {Machine: dies, GPUs: 1}}})

	p := s.Start("apply", "-o", "json")
	if !p.WaitEvents(0, func(e []scene.Event) bool { return started(e, dies.Name+"/k3s") }) {
		t.Fatalf("the join of %s never began:\n%s", dies.Name, p.Wait().Stderr)
	}
	if err := dies.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := p.Wait()
	if r.Code != exitUnreachable && r.Code != exitAction {
		t.Fatalf("exit code %d, want %d or %d\n%s", r.Code, exitUnreachable, exitAction, r.Stderr)
	}
	mentions(t, "the message", r.Stderr, dies.Name)
	var result applied
	s.Decode(r, &result)
	for _, n := range result.Nodes {
		if n.Name == lives.Name && (!n.Ready || !n.Proven) {
			t.Errorf("the agent that lives: %+v", n)
		}
	}
	if s.Nodes()[lives.Name].Tainted(unproven) {
		t.Error("the agent that lives is not proven")
	}

	if err := dies.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := dies.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Must(0, "apply")
	proven(t, s, map[string]int{m[0].Name: 0, lives.Name: 1, dies.Name: 1})
}

// TestALyingSmokeImage: images that report GPUs the pod was not given, or one
// GPU twice, do not open a node; an honest one does. The cluster is then broken in
// ways that the doctor has to name.
func TestALyingSmokeImage(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "lies")
	m := s.Machines(machine.Spec{Name: "server"}, machine.Spec{Name: "gpu", GPU: scene.H100(2)})
	cluster := scene.Cluster{Members: []scene.Member{{Machine: m[0]}, {Machine: m[1], GPUs: 2}}}
	for _, lie := range []struct{ image, code string }{
		{gpu.SmokeLying, "smoke-uuid-foreign"}, {gpu.SmokeDuplicate, "smoke-uuid-duplicate"},
	} {
		digest, err := s.Lab.Digest(lie.image)
		if err != nil {
			t.Fatal(err)
		}
		cluster.Set = s.SetFile(func(set map[string]any) {
			smoke := set["smoke"].(map[string]any)
			smoke["image"], smoke["digest"] = lie.image, digest
		})
		s.Write(cluster)
		r := s.Must(exitSmoke, "apply", "-o", "json")
		var result applied
		s.Decode(r, &result)
		code := ""
		for _, o := range result.Outcomes {
			if o.ID == m[1].Name+"/smoke" {
				code = o.Code
			}
		}
		if code != lie.code {
			t.Errorf("%s: the failure's code is %q, want %s: %+v", lie.image, code, lie.code, result.Outcomes)
		}
		if !s.Nodes()[m[1].Name].Tainted(unproven) {
			t.Errorf("%s opened the node", lie.image)
		}
		mentions(t, "the message", r.Stderr, m[1].Name)
	}
	cluster.Set = ""
	s.Write(cluster)
	s.Must(0, "apply")
	s.Until(time.Minute, "the node to be open", func() string {
		if s.Nodes()[m[1].Name].Tainted(unproven) {
			return "it has the taint"
		}
		return ""
	})
	proven(t, s, map[string]int{m[0].Name: 0, m[1].Name: 2})
	clinicOf(t, s, m[0], m[1]).rounds(t)
}
