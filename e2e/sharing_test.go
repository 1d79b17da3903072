//go:build lab

package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/e2e/lab/machine"
	"github.com/gpuctl/gpuctl/e2e/scene"
)

// TestTimeSlicing: one GPU for four pods, from the bare machine; a second run
// changes nothing; then three pods under another name; then seven slices of MIG;
// then whole GPUs again.
// What gpuctl proves by its own pods is seen again with a user's.
func TestTimeSlicing(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "slices")
	m := s.Machines(machine.Spec{Name: "a", GPU: scene.H100(1)})[0]
	shared := func(sharing map[string]any) scene.Cluster {
		return scene.Cluster{
			Members: []scene.Member{{Machine: m, GPUs: 1, More: map[string]any{"group": "slices"}}},
			Spec:    map[string]any{"groups": []map[string]any{{"name": "slices", "sharing": sharing}}},
		}
	}
	s.Write(shared(map[string]any{"timeSlicing": 4}))
	r := s.Must(0, "apply", "-o", "json")
	var first applied
	s.Decode(r, &first)
	done := map[string]string{}
	for _, o := range first.Outcomes {
		done[o.ID] = o.Status
	}
	for _, id := range []string{"smoke", "sharing", "sharing-proof"} {
		if done[m.Name+"/"+id] != "done" {
			t.Errorf("%s is %q: %+v", id, done[m.Name+"/"+id], first.Outcomes)
		}
	}
	offers(t, s, m.Name, map[string]string{"nvidia.com/gpu": "4"})
	labels := s.Nodes()[m.Name].Metadata.Labels
	for label, want := range map[string]string{
		"nvidia.com/device-plugin.config": "gpuctl-time-slicing-4", "nvidia.com/gpu.replicas": "4",
		"nvidia.com/gpu.sharing-strategy": "time-slicing", "nvidia.com/gpu.count": "1",
	} {
		if labels[label] != want {
			t.Errorf("label %s is %q, want %q", label, labels[label], want)
		}
	}
	nothingChanges(t, s, s.EndState())
	s.Must(0, "smoke")
	beside(t, s, m, 4, "time-slicing, 4 pods for each GPU")

	s.Write(shared(map[string]any{"timeSlicing": map[string]any{"replicas": 3, "renameByDefault": true}}))
	mentions(t, "the plan", s.Must(0, "plan").Stdout, "nvidia.com/gpu 4 -> 0", "nvidia.com/gpu.shared 0 -> 3", "isolates neither memory nor faults")
	s.Must(0, "gpu", "share", "set", "--group", "slices", "--time-slicing", "3", "--rename")
	offers(t, s, m.Name, map[string]string{"nvidia.com/gpu": "0", "nvidia.com/gpu.shared": "3"})
	mentions(t, "gpu share show", s.Must(0, "gpu", "share", "show").Stdout, "nvidia.com/gpu.shared", "3 pods for each GPU")

	cutIntoSlices(t, s, m)

	s.Must(0, "gpu", "share", "clear", "--group", "slices", "--yes")
	offers(t, s, m.Name, map[string]string{"nvidia.com/gpu": "1", "nvidia.com/gpu.shared": "0"})
	if label, there := s.Nodes()[m.Name].Metadata.Labels["nvidia.com/device-plugin.config"]; there {
		t.Errorf("the label stays: %q", label)
	}
	if label := s.Nodes()[m.Name].Metadata.Labels["nvidia.com/mig.config"]; label != "all-disabled" {
		t.Errorf("the MIG manager is asked for %q", label)
	}
	s.Exec(m, "systemctl restart k3s")
	getsItsGPU(t, s, m, "cdi")
}

// cutIntoSlices goes on to MIG by one profile: pods that hold the GPU leave before,
// the slices take pods side by side, one each.
func cutIntoSlices(t *testing.T, s *scene.Scene, m *machine.Machine) {
	t.Helper()
	s.Must(0, "gpu", "share", "set", "--group", "slices", "--mig", "1g.10gb", "--yes")
	offers(t, s, m.Name, map[string]string{"nvidia.com/gpu": "7", "nvidia.com/gpu.shared": "0"})
	node := s.Nodes()[m.Name]
	for label, want := range map[string]string{
		"nvidia.com/mig.config": "all-1g.10gb", "nvidia.com/mig.config.state": "success", "nvidia.com/mig.strategy": "single",
		"nvidia.com/gpu.count": "7", "nvidia.com/gpu.product": "NVIDIA-H100-PCIe-MIG-1g.10gb", "nvidia.com/device-plugin.config": "",
	} {
		if got := node.Metadata.Labels[label]; got != want {
			t.Errorf("label %s is %q, want %q", label, got, want)
		}
	}
	mentions(t, "plan", s.Must(0, "plan").Stdout, "nothing")
	beside(t, s, m, 7, "MIG single, 1g.10gb x7")
}

// userPods is a deployment whose pods ask for one share each.
const userPods = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: user, namespace: default}
spec:
  replicas: %d
  selector: {matchLabels: {app: user}}
  template:
    metadata: {labels: {app: user}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
        - {name: main, image: "docker.io/library/busybox:1.36.1", command: [sleep, "3600"], resources: {limits: {nvidia.com/gpu: 1}}}
`

// beside starts one pod more than there are shares: all but one run, and gpu list
// names those that do as the users of the only GPU.
func beside(t *testing.T, s *scene.Scene, m *machine.Machine, shares int, way string) {
	t.Helper()
	s.Exec(m, "k3s kubectl apply -f - <<'EOF'"+fmt.Sprintf(userPods, shares+1)+"EOF\n")
	s.Until(2*time.Minute, "the shares to be taken", func() string {
		var list struct {
			Items []struct{ Status struct{ Phase string } }
		}
		s.Kubectl(&list, "get pods -l app=user -o json")
		phases := map[string]int{}
		for _, p := range list.Items {
			phases[p.Status.Phase]++
		}
		if phases["Running"] == shares && phases["Pending"] == 1 {
			return ""
		}
		return fmt.Sprint(phases)
	})
	var got struct {
		GPUs []struct {
			Index                        int
			UUID, Model, Sharing, Health string
			Users                        []string
			UsersSure                    bool
			Utilisation                  *int
			Slices                       []struct{ Profile string }
			ProvenAt                     *time.Time
		}
		Missing []string
	}
	s.Decode(s.Must(0, "gpu", "list", "-o", "json"), &got)
	if len(got.GPUs) != 1 || len(got.Missing) > 0 {
		t.Fatalf("gpu list: %+v", got)
	}
	g := got.GPUs[0]
	if g.Index != 0 || g.UUID == "" || g.Model == "" || g.Health != "ok" || g.ProvenAt == nil || !g.UsersSure || len(g.Users) != shares ||
		g.Sharing != way {
		t.Errorf("gpu list: %+v", g)
	}
	if cut := strings.HasPrefix(way, "MIG"); cut && len(g.Slices) != shares || !cut && (g.Utilisation == nil || *g.Utilisation != 0) {
		t.Errorf("gpu list: slices %v, utilisation by the DCGM exporter %v", g.Slices, g.Utilisation)
	}
	s.Exec(m, "k3s kubectl delete deployment user --wait --timeout 30s && k3s kubectl wait pod -l app=user --for=delete --timeout 30s")
}

// offers fails the test unless a node has these resources allocatable.
func offers(t *testing.T, s *scene.Scene, node string, want map[string]string) {
	t.Helper()
	have := s.Nodes()[node].Status.Allocatable
	for resource, n := range want {
		if have[resource] != n && !(n == "0" && have[resource] == "") {
			t.Errorf("%s offers %s %s, want %s", node, have[resource], resource, n)
		}
	}
}
