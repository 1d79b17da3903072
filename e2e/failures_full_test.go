//go:build lab && full

package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/e2e/lab/gpu"
	"github.com/gpuctl/gpuctl/e2e/lab/machine"
	"github.com/gpuctl/gpuctl/e2e/scene"
)

// TestFullSlowFailuresOfAMachine: what takes the probe as long as its limits allow.
func TestFullSlowFailuresOfAMachine(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "slow")
	m := s.Machines(machine.Spec{Name: "a", GPU: scenario(t, gpu.H100(2))})
	w := &ward{t: t, s: s, on: m[0], gpus: gpu.H100(2), config: scene.Cluster{Members: []scene.Member{{Machine: m[0], GPUs: 2}}}}
	w.open()
	w.run([]failure{
		{name: "nvidia-smi hangs", gpus: func(s *gpu.Scenario) { s.Faults.Hang = true }, want: codes{"nvidia-smi-hangs": "blocks"}},
		{
			name: "a file system hangs", modelled: "df waits as on a dead NFS server", want: codes{"probe-incomplete": "warns"}, shows: "disks",
			do: program("/usr/local/bin/df", "exec sleep 60"), undo: "rm /usr/local/bin/df",
		},
	})
}

// TestFullOperatorFailures: faults of the GPU Operator that take it a while to notice.
func TestFullOperatorFailures(t *testing.T) {
	t.Parallel()
	c := newClinic(t, "operator")
	none := map[string]string{}
	kubectl := func(args string) string { return "k3s kubectl -n gpu-operator " + args + " >/dev/null\n" }
	kube := func(args string) string { return c.s.Exec(c.server, "k3s kubectl -n gpu-operator "+args) }
	const nowhere = `{"spec":{"strategy":{"type":"Recreate","rollingUpdate":null},"template":{"spec":{"nodeSelector":{"lab":"nowhere"}}}}}`
	const anywhere = `{"spec":{"template":{"spec":{"nodeSelector":{"lab":null}}}}}`
	c.treat(t, illness{
		name: "the operator's pod finds no place", server: kubectl("patch deployment gpu-operator --patch '" + nowhere + "'"),
		undoServer: kubectl("patch deployment gpu-operator --patch '"+anywhere+"'") + kubectl("rollout status deployment gpu-operator --timeout 50s"),
		shown: func() string {
			if out := kube("get deployment gpu-operator -o jsonpath='{.status.availableReplicas}'"); out != "" && out != "0" {
				return out + " available"
			}
			return ""
		},
		want: codes{"operator-deployment-down": "blocks"}, pods: none,
	})
	c.recovers(t)
	validator := "delete pod -l app=nvidia-operator-validator --wait=false"
	c.treat(t, illness{
		name: "mounts are not shared", agent: "mount --make-rprivate /", server: "",
		shown: privateShown(c, kube, validator), undoAgent: "mount --make-rshared /", undoServer: kubectl(validator),
		want: codes{"mount-not-shared": "blocks"}, pods: none, shows: "shared or slave mount",
	})
	c.recovers(t)
	c.treat(t, illness{
		name: "node feature discovery gives no labels",
		// The operator itself takes its own labels back when those of the discovery go.
		server: kubectl(`patch daemonset gpu-operator-node-feature-discovery-worker --patch '{"spec":{"template":{"spec":{"nodeSelector":{"lab":"nowhere"}}}}}'`) +
			kubectl("delete nodefeatures --all --wait=false") +
			fmt.Sprintf("k3s kubectl label node %s feature.node.kubernetes.io/pci-10de.present- feature.node.kubernetes.io/pci-0302_10de.present- >/dev/null\n", c.agent.Name),
		undoServer: kubectl(`patch daemonset gpu-operator-node-feature-discovery-worker --patch '{"spec":{"template":{"spec":{"nodeSelector":{"lab":null}}}}}'`),
		shown: func() string {
			n := c.s.Nodes()[c.agent.Name]
			if n.Metadata.Labels["nvidia.com/gpu.present"] != "true" && n.Status.Allocatable["nvidia.com/gpu"] == "0" {
				return ""
			}
			return fmt.Sprintf("%v %v", n.Metadata.Labels, n.Status.Allocatable)
		},
		want: codes{"nfd-labels-missing": "blocks"}, pods: none,
	})
	c.recovers(t)
}

// privateShown makes a pod of the operator start with private mounts, and waits
// until the kubelet has refused it.
func privateShown(c *clinic, kube func(string) string, again string) func() string {
	asked := false
	return func() string {
		if !asked {
			kube(again)
			asked = true
		}
		if out := kube("get pods -l app=nvidia-operator-validator -o jsonpath='{.items[*].status}'"); !strings.Contains(out, "shared or slave mount") {
			return out
		}
		return ""
	}
}
