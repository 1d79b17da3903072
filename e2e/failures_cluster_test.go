//go:build lab && full

package e2e_test

import (
	"testing"

	"github.com/gpuctl/gpuctl/e2e/lab/machine"
	"github.com/gpuctl/gpuctl/e2e/scene"
)

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
	return clinicOf(t, s, m[0], m[1])
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
	pushTooNew(t, c.s.Lab.Mirror)
	c.treat(t, c.newImage())
	c.bundle(t)
	for _, b := range brokenGPUs() {
		c.cordon(t, b)
	}
	c.halves(t)
}

// closedNodes: the GPUs are free and something keeps pods from them.
func (c *clinic) closedNodes() []illness {
	node := c.agent.Name
	return []illness{
		c.closed("a taint", "team=a", "pod-untolerated-taint"),
		c.closed("an unproven node", unproven, "pod-node-unproven"),
		{
			name: "a cordoned node", server: "k3s kubectl cordon " + node + " >/dev/null\n" + manifest(one), undoServer: oneGone + "k3s kubectl uncordon " + node + " >/dev/null",
			shown: c.oneWaits, want: codes{"node-cordoned": "warns"}, pods: map[string]string{"default/one": "node-cordoned"}, shows: "free GPUs are on nodes that are cordoned",
		},
	}
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
