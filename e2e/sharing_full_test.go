//go:build lab && full

package e2e_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/e2e/lab/machine"
	"github.com/gpuctl/gpuctl/e2e/scene"
)

// TestFullKindsOfSharing: MPS beside MIG in one cluster, on a card whose MIG mode
// changes only by a reset: the machine is rebooted by gpuctl. Then slices of
// several profiles, by NVIDIA's mix and by counts of one's own, beside
// time-slicing, and whole GPUs again.
func TestFullKindsOfSharing(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "kinds")
	ms := s.Machines(machine.Spec{Name: "a", GPU: scene.H100(1)}, machine.Spec{Name: "b", GPU: scene.A100(1)})
	cluster := func(a, b map[string]any) scene.Cluster {
		return scene.Cluster{
			Members: []scene.Member{
				{Machine: ms[0], GPUs: 1, More: map[string]any{"group": "first"}},
				{Machine: ms[1], GPUs: 1, More: map[string]any{"group": "second"}},
			},
			Spec: map[string]any{"groups": []map[string]any{{"name": "first", "sharing": a}, {"name": "second", "sharing": b}}},
		}
	}
	mps := map[string]any{"mps": 5}
	s.Write(cluster(mps, map[string]any{"mig": "2g.20gb"}))
	mentions(t, "the plan", s.Must(0, "plan", "-v").Stdout, "nvidia.com/gpu 1 -> 5", "nvidia.com/gpu 1 -> 3", "changes only by a reset")
	s.Must(0, "apply", "--yes")
	offers(t, s, ms[0].Name, map[string]string{"nvidia.com/gpu": "5"})
	offers(t, s, ms[1].Name, map[string]string{"nvidia.com/gpu": "3"})
	labelled(t, s, ms[0].Name, map[string]string{"nvidia.com/gpu.sharing-strategy": "mps", "nvidia.com/mps.capable": "true", "nvidia.com/gpu.replicas": "5"})
	labelled(t, s, ms[1].Name, map[string]string{"nvidia.com/mig.config": "all-2g.20gb", "nvidia.com/mig.config.state": "success",
		"nvidia.com/gpu.product": "NVIDIA-A100-80GB-PCIe-MIG-2g.20gb"})
	nothingChanges(t, s, s.EndState())

	// What NVIDIA refuses is refused before anything changes.
	s.Write(cluster(mps, map[string]any{"mig": "balanced"}))
	mentions(t, "MPS beside mixed", s.Must(2, "apply", "--yes").Stderr, "refuses MPS under mixed")
	s.Write(cluster(mps, map[string]any{"mig": "1g.5gb"}))
	mentions(t, "another card's profile", s.Must(3, "apply", "--yes").Stderr, "sharing-refused", "no profile 1g.5gb")

	s.Write(cluster(map[string]any{"timeSlicing": 2}, map[string]any{"mig": "balanced"}))
	s.Must(0, "apply", "--yes")
	offers(t, s, ms[0].Name, map[string]string{"nvidia.com/gpu": "2"})
	offers(t, s, ms[1].Name, map[string]string{"nvidia.com/gpu": "0", "nvidia.com/mig-1g.10gb": "2", "nvidia.com/mig-2g.20gb": "1", "nvidia.com/mig-3g.40gb": "1"})
	labelled(t, s, ms[1].Name, map[string]string{"nvidia.com/mig.strategy": "mixed", "nvidia.com/mig-1g.10gb.count": "2"})

	s.Must(0, "gpu", "share", "set", "--group", "second", "--mig", "1g.10gb:3 4g.40gb:1", "--yes")
	offers(t, s, ms[1].Name, map[string]string{"nvidia.com/mig-1g.10gb": "3", "nvidia.com/mig-4g.40gb": "1", "nvidia.com/mig-3g.40gb": "0"})
	s.Must(0, "smoke")

	// The mode outlives a reboot, the slices do not: the MIG manager cuts them again.
	if err := ms[1].Reboot(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := ms[1].Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Until(5*time.Minute, "the slices to be there after a reboot", func() string {
		listed, err := s.TryExec(ms[1], "nvidia-smi -L | grep -c MIG- || :")
		if n := s.Nodes()[ms[1].Name]; err != nil || listed != "4" || n.Status.Allocatable["nvidia.com/mig-1g.10gb"] != "3" {
			return fmt.Sprintf("%s listed, %v allocatable, state %s", listed, n.Status.Allocatable, n.Metadata.Labels["nvidia.com/mig.config.state"])
		}
		return ""
	})
	s.Must(0, "gpu", "share", "clear", "--group", "second", "--yes")
	offers(t, s, ms[1].Name, map[string]string{"nvidia.com/gpu": "1", "nvidia.com/mig-1g.10gb": "0"})
	s.Must(0, "gpu", "share", "clear", "--group", "first", "--yes")
	offers(t, s, ms[0].Name, map[string]string{"nvidia.com/gpu": "1"})
	nothingChanges(t, s, s.EndState())
}

// labelled fails the test unless a node has these labels.
func labelled(t *testing.T, s *scene.Scene, node string, want map[string]string) {
	t.Helper()
	have := s.Nodes()[node].Metadata.Labels
	for label, value := range want {
		if have[label] != value {
			t.Errorf("label %s of %s is %q, want %q", label, node, have[label], value)
		}
	}
}

// TestFullRuntimePath: the lines that status tells a user to write give a pod its
// GPU after the first apply, a restart of k3s, a reboot and another apply; and so
// by a runtime class, when gpuctl.yaml asks for that.
func TestFullRuntimePath(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "paths")
	m := s.Machines(machine.Spec{Name: "a", GPU: scene.H100(2)})[0]
	for _, path := range []string{"cdi", "runtimeClass"} {
		s.Write(scene.Cluster{Members: []scene.Member{{Machine: m, GPUs: 2}}, Spec: map[string]any{"gpu": map[string]any{"runtimePath": path}}})
		s.Must(0, "apply", "--yes")
		getsItsGPU(t, s, m, path)
		s.Exec(m, "systemctl restart k3s")
		getsItsGPU(t, s, m, path)
		if err := m.Reboot(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := m.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Until(3*time.Minute, "the API after the reboot", func() string {
			if r := s.Run("status"); r.Code != 0 {
				return r.Stderr
			}
			return ""
		})
		getsItsGPU(t, s, m, path)
		s.Must(0, "apply", "--yes")
		getsItsGPU(t, s, m, path)
		s.Must(0, "smoke")
	}
}
