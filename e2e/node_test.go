//go:build lab

package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/e2e/lab/gpu"
	"github.com/gpuctl/gpuctl/e2e/lab/machine"
	"github.com/gpuctl/gpuctl/e2e/scene"
)

// TestNodesComeAndGo: a machine is added while a pod runs, removed with a
// disruption budget in the way, and one comes back rebuilt, with a new host key
// under its old name.
func TestNodesComeAndGo(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "nodes")
	m := s.Machines(machine.Spec{Name: "server"}, machine.Spec{Name: "one", GPU: scene.H100(1)}, machine.Spec{Name: "two", GPU: scene.H100(1)})
	server, one, two := m[0], m[1], m[2]
	s.Write(scene.Cluster{Members: []scene.Member{{Machine: server}, {Machine: one, GPUs: 1}}})
	s.Must(0, "apply")

	s.Exec(server, deployment("stays", one.Name))
	before := running(s, server, "stays")
	s.Must(0, "node", "add", "ubuntu@"+two.IP, "--name", two.Name, "--gpus", "1")
	settled(t, s, map[string]int{server.Name: 0, one.Name: 1, two.Name: 1})
	if after := running(s, server, "stays"); after != before {
		t.Errorf("the pod that ran while a node was added is another one: %s, was %s", after, before)
	}
	mentions(t, "gpuctl.yaml", listed(t, s), two.Name, two.IP)

	// A node deleted under its running agent comes back.
	s.Exec(server, "k3s kubectl delete node "+two.Name)
	s.Must(0, "apply")
	settled(t, s, map[string]int{server.Name: 0, one.Name: 1, two.Name: 1})

	removed(t, s, server, two)
	replaced(t, s, server, one)
}

// removed takes a node out, past a pod by hand and a budget.
func removed(t *testing.T, s *scene.Scene, server, two *machine.Machine) {
	t.Helper()
	s.Exec(server, fmt.Sprintf(`k3s kubectl run by-hand --image %s --overrides '{"spec":{"nodeName":%q,"terminationGracePeriodSeconds":1}}' --command -- sleep 3600`, gpu.Smoke, two.Name))
	r := s.Must(exitFindings, "node", "remove", two.Name, "--yes")
	mentions(t, "what stands in the way", r.Stdout, "default/by-hand", "no controller")
	if cordoned(s, two.Name) {
		t.Error("the node was touched though a pod stood in the way")
	}
	s.Exec(server, "k3s kubectl delete pod by-hand --wait --timeout 50s")

	s.Exec(server, deployment("guarded", two.Name)+"k3s kubectl create pdb guarded --selector app=guarded --min-available 1\n")
	running(s, server, "guarded")
	r = s.Must(exitAction, "node", "remove", two.Name, "--yes", "--force", "--drain-timeout", "5s")
	mentions(t, "the message", r.Stderr, "guarded-", "disruption budget", "node uncordon "+two.Name)
	if !cordoned(s, two.Name) || !strings.Contains(listed(t, s), two.Name) {
		t.Error("after a failed drain the node is to be cordoned and listed")
	}
	s.Exec(server, "k3s kubectl delete pdb guarded")
	s.Must(0, "node", "remove", two.Name, "--yes")
	if _, there := s.Nodes()[two.Name]; there {
		t.Error("the node is still there")
	}
	if out := s.Exec(server, "k3s kubectl -n kube-system get secrets -o name"); strings.Contains(out, two.Name+".node-password") {
		t.Errorf("its password is still there: %s", out)
	}
	if out, err := s.TryExec(two, "ls -d /etc/rancher/k3s /usr/local/bin/k3s /etc/systemd/system/k3s-agent.service /etc/rancher/node/password 2>/dev/null || :"); out != "" || err != nil {
		t.Errorf("left on the machine: %s (%v)", out, err)
	}
	if text := listed(t, s); strings.Contains(text, two.Name) {
		t.Errorf("it is still listed:\n%s", text)
	}
	s.Exec(server, "k3s kubectl delete deployment guarded")
}

// replaced brings a machine back that was made anew under its name.
func replaced(t *testing.T, s *scene.Scene, server, one *machine.Machine) {
	t.Helper()
	ip, uid := one.IP, s.Nodes()[one.Name].Metadata.UID
	one = s.Machines(machine.Spec{Name: "one", GPU: scene.H100(1)})[0]
	if one.IP != ip {
		t.Fatalf("the machine came back at %s, not at %s", one.IP, ip)
	}
	s.Must(exitUnreachable, "apply")
	r := s.Must(exitFindings, "node", "replace", one.Name, "--yes")
	mentions(t, "the question", r.Stderr, "known:", "now:", "SHA256:", "--accept-new-host-key")
	s.Must(0, "node", "replace", one.Name, "--yes", "--accept-new-host-key")
	if n := s.Nodes()[one.Name]; n.Metadata.UID == uid {
		t.Error("the node is the old one")
	}
	settled(t, s, map[string]int{server.Name: 0, one.Name: 1})
}

// settled waits until the operator has looked at all its operands again, which
// it does in its own time after a node has come, and then wants what proven wants.
func settled(t *testing.T, s *scene.Scene, want map[string]int) {
	t.Helper()
	s.Until(2*time.Minute, "the operator to see its operands again", func() string {
		var got status
		if s.Decode(s.Must(0, "status", "-o", "json"), &got); got.Operator != "ready" {
			return got.Operator
		}
		return ""
	})
	proven(t, s, want)
}

// listed is gpuctl.yaml as it is now.
func listed(t *testing.T, s *scene.Scene) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(s.Dir, "gpuctl.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// deployment is a script that makes a deployment of one pod on a node.
func deployment(name, node string) string {
	return fmt.Sprintf(`k3s kubectl apply -f - <<'EOF'
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: default}
spec:
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      nodeSelector: {kubernetes.io/hostname: %[2]s}
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: "%[3]s", command: [sleep, "3600"]}]
EOF
`, name, node, gpu.Smoke)
}

// running waits until a deployment's pod runs and returns its identity and restarts.
func running(s *scene.Scene, server *machine.Machine, app string) string {
	id := ""
	s.Until(2*time.Minute, "the pod of "+app, func() string {
		out := s.Exec(server, `k3s kubectl get pods -l app=`+app+` -o jsonpath='{range .items[*]}{.status.phase} {.metadata.uid} {.status.containerStatuses[0].restartCount}{end}'`)
		phase, rest, _ := strings.Cut(out, " ")
		if id = rest; phase != "Running" {
			return "it is " + out
		}
		return ""
	})
	return id
}

func cordoned(s *scene.Scene, node string) bool {
	var n struct {
		Spec struct{ Unschedulable bool }
	}
	s.Kubectl(&n, "get node "+node+" -o json")
	return n.Spec.Unschedulable
}
