//go:build lab

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

// clinicOf looks at a cluster of a server and a machine with two GPUs, in which
// all is well.
func clinicOf(t *testing.T, s *scene.Scene, server, agent *machine.Machine) *clinic {
	t.Helper()
	c := &clinic{s: s, server: server, agent: agent, healthy: map[string]string{}}
	settled(t, s, map[string]int{server.Name: 0, agent.Name: 2})
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

// recovers waits until the doctor finds what it found at first, and no more:
// the operator looks at its operands again in its own time.
func (c *clinic) recovers(t *testing.T) {
	t.Helper()
	c.s.Until(6*time.Minute, "the cluster to be healthy again", func() string {
		for _, f := range c.doctor(t).Findings {
			if c.healthy[f.Machine+" "+f.Code] != f.Severity {
				return fmt.Sprintf("%+v", f)
			}
		}
		return ""
	})
}
