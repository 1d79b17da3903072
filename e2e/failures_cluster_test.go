//go:build lab && full

package e2e_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/e2e/lab/machine"
	"github.com/gpuctl/gpuctl/e2e/scene"
)

// examined is what doctor -o json prints, as far as tests read it.
type examined struct {
	Halves   []struct{ Name, State string }
	Findings []finding
	Pods     []struct{ Pod, Node, Code, Why string }
	Reports  []struct {
		Machine, Driver string
		GPUs            []struct{ UUID, Serial string }
		Log             []string
	}
	Cordoned []string
}

// illness is one way to break a living cluster, and what the doctor has to say.
type illness struct {
	name string
	// modelled says what stands in for the real cause.
	modelled string
	// server and agent are scripts on the two machines; the undo ones heal.
	server, agent         string
	undoServer, undoAgent string
	// shown waits until the cluster shows it, "" when it does.
	shown func() string
	// want is all that may be found beside what the healthy cluster shows; pods
	// are the reasons of those that ask for GPUs.
	want codes
	pods map[string]string
	// shows stands in what is found or told of pods.
	shows string
}

// clinic is a cluster of a server and a machine with two GPUs.
type clinic struct {
	s             *scene.Scene
	server, agent *machine.Machine
	healthy       map[string]string
}

// newClinic bootstraps the cluster, as a user whose sudo wants a password.
func newClinic(t *testing.T, name string) *clinic {
	t.Helper()
	s := stage.New(t, name)
	m := s.Machines(machine.Spec{Name: "server"}, machine.Spec{Name: "gpu", GPU: scene.H100(2)})
	s.Env = []string{"SUDO_PASSWORD=" + password}
	s.Write(scene.Cluster{
		Members: []scene.Member{{Machine: m[0]}, {Machine: m[1], GPUs: 2}},
		User:    "ops", SSH: map[string]any{"sudoPassword": map[string]any{"env": "SUDO_PASSWORD"}},
	})
	s.Must(0, "apply", "--yes", "--accept-new-host-keys")
	c := &clinic{s: s, server: m[0], agent: m[1]}
	settled(t, s, map[string]int{m[0].Name: 0, m[1].Name: 2})
	c.healthy = map[string]string{}
	for _, f := range c.doctor(t).Findings {
		if f.Severity == "blocks" {
			t.Fatalf("the healthy cluster: %+v", f)
		}
		t.Logf("the healthy cluster shows %+v", f)
		c.healthy[f.Machine+" "+f.Code] = f.Severity
	}
	return c
}

// doctor looks at the cluster. The exit code says whether something blocks.
func (c *clinic) doctor(t *testing.T, args ...string) examined {
	t.Helper()
	r := c.s.Run(append([]string{"doctor", "--no-pairs", "-o", "json"}, args...)...)
	var got examined
	c.s.Decode(r, &got)
	exit := 0
	for _, f := range got.Findings {
		if f.Severity == "blocks" {
			exit = exitFindings
		}
	}
	if r.Code != exit {
		t.Errorf("doctor: exit code %d, want %d: %+v\n%s", r.Code, exit, got.Findings, r.Stderr)
	}
	return got
}

// treat provokes an illness, wants exactly its findings, and heals it.
func (c *clinic) treat(t *testing.T, i illness) {
	t.Run(i.name, func(t *testing.T) {
		if i.modelled != "" {
			t.Logf("modelled: %s", i.modelled)
		}
		do := func(m *machine.Machine, script string) {
			if script != "" {
				c.s.Exec(m, "set -e\n"+script)
			}
		}
		defer func() {
			do(c.server, i.undoServer)
			do(c.agent, i.undoAgent)
		}()
		do(c.server, i.server)
		do(c.agent, i.agent)
		if i.shown != nil {
			c.s.Until(90*time.Second, "the cluster to show it", i.shown)
		}
		got := c.doctor(t)
		found, said := codes{}, &strings.Builder{}
		for _, f := range got.Findings {
			if c.healthy[f.Machine+" "+f.Code] != f.Severity {
				found[f.Code] = f.Severity
				fmt.Fprintf(said, "%s of %s (%s): %s\n", f.Code, f.Machine, f.Severity, f.Evidence)
			}
		}
		if !maps.Equal(found, i.want) {
			t.Errorf("found %v, want %v:\n%s", found, i.want, said)
		}
		reasons := map[string]string{}
		for _, p := range got.Pods {
			reasons[p.Pod] = p.Code
			fmt.Fprintf(said, "%s: %s\n", p.Pod, p.Why)
		}
		if !maps.Equal(reasons, i.pods) {
			t.Errorf("pods %v, want %v:\n%s", reasons, i.pods, said)
		}
		mentions(t, "what is said", said.String(), i.shows)
		t.Logf("%s", said)
	})
}

// TestFullWhatIsWrongInACluster: each fault of a living cluster is named by its own
// code, and nothing else is; pods that wait for GPUs get their reason.
func TestFullWhatIsWrongInACluster(t *testing.T) {
	t.Parallel()
	c := newClinic(t, "sick")
	c.treat(t, c.pendingPods())
	for _, i := range c.closedNodes() {
		c.treat(t, i)
	}
	for _, i := range c.brokenAgents() {
		c.treat(t, i)
	}
	c.recovers(t)
	c.bundle(t)
	c.cordon(t)
	c.halves(t)
}

// recovers waits until the doctor finds what it found at first, and no more:
// the operator looks at its operands again in its own time.
func (c *clinic) recovers(t *testing.T) {
	t.Helper()
	c.s.Until(3*time.Minute, "the cluster to be healthy again", func() string {
		for _, f := range c.doctor(t).Findings {
			if c.healthy[f.Machine+" "+f.Code] != f.Severity {
				return fmt.Sprintf("%+v", f)
			}
		}
		return ""
	})
}

// halves: the doctor goes on where the API is dead, and where SSH is.
func (c *clinic) halves(t *testing.T) {
	c.treat(t, illness{
		name: "the API is dead", server: "systemctl stop k3s", undoServer: "systemctl start k3s",
		want: codes{"k3s-stopped": "blocks"}, pods: map[string]string{}, shows: "k3s.service is inactive",
	})
	t.Run("SSH is dead", func(t *testing.T) {
		c.s.Must(0, "kubeconfig")
		const dead = "systemctl stop ssh; pkill -x sshd || :"
		for _, m := range []*machine.Machine{c.server, c.agent} {
			c.s.Exec(m, dead)
			defer c.s.Exec(m, "systemctl start ssh")
		}
		r := c.s.Must(exitUnreachable, "doctor", "--no-pairs", "-o", "json")
		var got examined
		c.s.Decode(r, &got)
		if len(got.Halves) != 2 || got.Halves[0].State != "dead" || got.Halves[1].State != "whole" {
			t.Errorf("halves %+v; want SSH dead, the API whole", got.Halves)
		}
		for _, f := range got.Findings {
			if f.Severity == "blocks" {
				t.Errorf("the cluster is healthy: %+v", f)
			}
		}
	})
}
