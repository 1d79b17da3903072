//go:build lab && full

package e2e_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/e2e/lab/gpu"
	"github.com/gpuctl/gpuctl/e2e/lab/machine"
	"github.com/gpuctl/gpuctl/e2e/scene"
)

// TestFullExisting: an operator in another namespace under a generated name is
// kept and shares GPUs as asked; a machine joins by URL and token, with the API
// given and without; an operator without Helm is used as it is.
func TestFullExisting(t *testing.T) {
	s, m := withoutOperator(t, "full-theirs", machine.Spec{Name: "b", GPU: scene.H100(1)})
	const generated = "gpu-operator-1737000001"

	elsewhere := s.SetFile(func(set map[string]any) { set["operator"].(map[string]any)["namespace"] = "nvidia" })
	s.existing(t, map[string]any{"set": elsewhere})
	s.Must(0, "apply", "-f", theirs)
	asGenerated(t, s.Scene, generated)

	// Two versions that nobody tested together meet only by force.
	s.existing(t, map[string]any{"gpu": map[string]any{"operator": map[string]any{"version": gpu.NextOperator}}})
	mentions(t, "an untested pair", s.Must(exitFindings, "apply", "-f", theirs).Stderr, "version-pair-untested", "with GPU Operator "+gpu.NextOperator)

	s.existing(t, map[string]any{"groups": []map[string]any{{
		"name": "shared", "selector": map[string]any{"nvidia.com/gpu.product": "NVIDIA-H100-PCIe"}, "sharing": map[string]any{"timeSlicing": 2},
	}}})
	mentions(t, "the plan", s.Must(0, "plan", "-v", "-f", theirs).Stdout, "nvidia/"+generated, "change the values of GPU Operator",
		`devicePlugin.config.name: (absent) -> "gpuctl-sharing"`, "nvidia.com/gpu 2 -> 4")
	s.Must(0, "apply", "-f", theirs)
	offers(t, s.Scene, m.Name, map[string]string{"nvidia.com/gpu": "4"})
	unchanged(t, s.Scene)
	if got := releases(s.Scene); len(got) != 2 || got[1] != generated+" 2 deployed" {
		t.Errorf("releases: %v", got)
	}
	s.existing(t, nil)
	s.Must(0, "apply", "-f", theirs)
	offers(t, s.Scene, m.Name, map[string]string{"nvidia.com/gpu": "2"})

	joined(t, s, m)

	s.Server("k3s kubectl -n nvidia delete secrets -l owner=helm")
	s.existing(t, nil)
	mentions(t, "the plan", s.Must(0, "plan", "-v", "-f", theirs).Stdout, "operator-not-helm", "nothing to do")
	s.Must(0, "smoke", "-f", theirs)
	unchanged(t, s.Scene)
	oneOperator(t, s.Scene)
}

// joined makes the scene's second machine an agent of the first one's cluster.
func joined(t *testing.T, s *foreign, server *machine.Machine) {
	t.Helper()
	b := s.Others(server)[0]
	secret := s.Server("cat /var/lib/rancher/k3s/server/agent-token")
	if err := os.WriteFile(filepath.Join(s.Dir, "token"), []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	join := map[string]any{"server": "https://" + server.IP + ":6443", "token": map[string]any{"file": "token"}}
	spec := map[string]any{
		"ssh":      map[string]any{"user": "ubuntu", "identityFile": s.Lab.Key()},
		"machines": []map[string]any{{"name": b.Name, "host": b.IP, "gpus": 1}},
	}
	whole := maps.Clone(join)
	whole["kubeconfig"] = "kc/config"
	for name, existing := range map[string]map[string]any{"with the API": whole, "by the token alone": join} {
		spec["kubernetes"] = map[string]any{"existing": existing}
		s.existing(t, spec)
		r := s.Must(0, "apply", "-f", theirs, "-v")
		if _, secret, _ := strings.Cut(secret, "::"); strings.Contains(r.Stdout+r.Stderr, secret) {
			t.Errorf("%s: the token is shown", name)
		}
		s.Until(time.Minute, "the node to be Ready", func() string {
			n, there := s.Nodes()[b.Name]
			if !there || !n.Ready() {
				return "it is not"
			}
			return ""
		})
		if s.Nodes()[b.Name].Tainted(unproven) {
			t.Errorf("%s: the node of somebody else's cluster has the taint", name)
		}
		if existing["kubeconfig"] != nil {
			allProven(t, s, map[string]int{server.Name: 2, b.Name: 1})
		} else {
			mentions(t, "the run", r.Stdout, "cluster-unseen")
		}
		var again applied
		if s.Decode(s.Must(0, "apply", "-f", theirs, "-o", "json"), &again); again.Changed != 0 {
			t.Errorf("%s, once more: %+v", name, again.Outcomes)
		}
		s.Must(0, "reset", "-f", theirs, "--yes")
		s.Server("k3s kubectl delete node --ignore-not-found " + b.Name + " && k3s kubectl -n kube-system delete secret --ignore-not-found " + b.Name + ".node-password.k3s")
	}
}
