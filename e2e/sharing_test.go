//go:build lab

package e2e_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/e2e/lab/machine"
	"github.com/gpuctl/gpuctl/e2e/scene"
)

// TestTimeSlicing: one GPU for four pods, from the bare machine; a second run
// changes nothing; then three pods under another name; then whole GPUs again.
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
	beside(t, s, m, 4)

	s.Write(shared(map[string]any{"timeSlicing": map[string]any{"replicas": 3, "renameByDefault": true}}))
	mentions(t, "the plan", s.Must(0, "plan").Stdout, "nvidia.com/gpu 4 -> 0", "nvidia.com/gpu.shared 0 -> 3", "isolates neither memory nor faults")
	s.Must(0, "gpu", "share", "set", "--group", "slices", "--time-slicing", "3", "--rename")
	offers(t, s, m.Name, map[string]string{"nvidia.com/gpu": "0", "nvidia.com/gpu.shared": "3"})
	mentions(t, "gpu share show", s.Must(0, "gpu", "share", "show").Stdout, "nvidia.com/gpu.shared", "3 pods for each GPU")

	s.Must(0, "gpu", "share", "clear", "--group", "slices")
	offers(t, s, m.Name, map[string]string{"nvidia.com/gpu": "1", "nvidia.com/gpu.shared": "0"})
	if label, there := s.Nodes()[m.Name].Metadata.Labels["nvidia.com/device-plugin.config"]; there {
		t.Errorf("the label stays: %q", label)
	}
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
func beside(t *testing.T, s *scene.Scene, m *machine.Machine, shares int) {
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
		g.Sharing != fmt.Sprintf("time-slicing, %d pods for each GPU", shares) {
		t.Errorf("gpu list: %+v", g)
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
