//go:build lab && full

package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/gpuctl/gpuctl/e2e/lab/gpu"
	"github.com/gpuctl/gpuctl/e2e/lab/recipe"
	"github.com/gpuctl/gpuctl/e2e/lab/tofu"
	"github.com/gpuctl/gpuctl/e2e/scene"
)

// TestFullProvision rents machines of the lab with Terraform, or OpenTofu, and
// gpuctl's own module without a provider, makes a cluster of them, proves it, scales it to
// zero and back, and gives everything back.
func TestFullProvision(t *testing.T) {
	s := stage.New(t, "rented")
	program := terraform(t)
	create, destroy := rental(t, s)
	s.Must(0, "init", "-f", "draft.yaml", "--terraform", "infra", "--module", "local", "--name", s.Name)
	writeRented(t, s, program, map[string]any{"name": s.Name, "gpus": 1, "create": create, "destroy": destroy})
	server, one := s.Name+"-server", s.Name+"-1"

	var planned struct {
		Summary struct{ Add int }
	}
	s.Decode(s.Must(0, "provision", "plan", "-o", "json"), &planned)
	if planned.Summary.Add != 2 {
		t.Errorf("the plan adds %d", planned.Summary.Add)
	}
	s.Must(exitFindings, "provision", "apply")
	r := s.Must(0, "provision", "apply", "--yes")
	mentions(t, "the result of apply", r.Stdout, "machine "+server+": added", "machine "+one+": added")
	mentions(t, "the progress", r.Stderr, "create terraform_data.gpu[0]")
	var listed struct {
		Machines []struct{ Name, Host, HostKey string }
	}
	s.Decode(s.Must(0, "provision", "output", "-o", "json"), &listed)
	if len(listed.Machines) != 2 || !strings.HasPrefix(listed.Machines[0].HostKey, "ssh-ed25519 ") {
		t.Fatalf("the output lists %+v", listed.Machines)
	}
	mentions(t, "a second apply", s.Must(0, "provision", "apply", "--yes").Stdout, "nothing to do")

	s.Must(0, "bootstrap")
	onServer(t, s, server)
	proven(t, s, map[string]int{server: 0, one: 1})
	s.Must(0, "smoke")
	costs(t, s, server, one)

	scaled(t, s, server, one)

	mentions(t, "what goes", s.Must(exitFindings, "provision", "destroy").Stderr, "machine "+one+": gone")
	s.Must(0, "provision", "destroy", "--yes")
	machines, err := s.Lab.All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range machines {
		if strings.HasPrefix(m.Name, s.Name+"-") {
			t.Errorf("%s is still rented", m.Name)
		}
	}
}

// costs asks what the machines cost while a GPU is free, held, and free again.
func costs(t *testing.T, s *scene.Scene, server, one string) {
	t.Helper()
	idle := func(args ...string) (found costed) {
		t.Helper()
		s.Decode(s.Must(0, append([]string{"cost", "-o", "json"}, args...)...), &found)
		return found
	}
	first := idle()
	if first.PerHour != 2.5 || first.IdleShare != 1 || first.Spent <= 0 || strings.Join(first.Unpriced, " ") != server {
		t.Errorf("an idle GPU costs %+v", first)
	}
	if m := first.of(one); !m.Idle || m.IdleSince != nil || m.FirstSeenIdle == nil {
		t.Errorf("where no pod shows since when: %+v", m)
	}
	m, err := s.Lab.Get(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	s.Exec(m, holder(one))
	s.Until(2*time.Minute, "the pod to hold the GPU", func() string {
		// The lab's exporter says that every GPU is idle, whoever holds it.
		if c := idle(); c.IdleShare != 0 || c.of(one).InUse != 1 || c.of(one).Utilisation == nil || *c.of(one).Utilisation != 0 {
			return fmt.Sprintf("it is %+v", c)
		}
		return ""
	})
	s.Exec(m, "k3s kubectl exec holder -- touch /tmp/over")
	s.Until(2*time.Minute, "the GPU to be idle since the pod's end", func() string {
		if c := idle(); c.of(one).IdleSince == nil {
			return fmt.Sprintf("it is %+v", c)
		}
		return ""
	})
	if c := idle("--idle-for", "24h"); len(c.Machines) > 0 {
		t.Errorf("idle for a day: %+v", c.Machines)
	}
	mentions(t, "status", s.Must(0, "status").Stdout, one+" is idle")
	s.Exec(m, "k3s kubectl delete pod holder")
}

// costed is what is read of gpuctl cost.
type costed struct {
	PerHour, IdleShare, Spent float64
	Unpriced                  []string
	Machines                  []machineCost
}

type machineCost struct {
	Name                     string
	InUse                    int
	Utilisation              *int
	Idle                     bool
	IdleSince, FirstSeenIdle *time.Time
}

func (c costed) of(name string) machineCost {
	for _, m := range c.Machines {
		if m.Name == name {
			return m
		}
	}
	return machineCost{}
}

// holder is a script that makes a pod which holds a GPU until /tmp/over is there.
func holder(node string) string {
	return fmt.Sprintf(`k3s kubectl apply -f - <<'EOF'
apiVersion: v1
kind: Pod
metadata: {name: holder, namespace: default}
spec:
  restartPolicy: Never
  nodeSelector: {kubernetes.io/hostname: %s}
  containers:
    - {name: main, image: "%s", command: [sh, -c, "until [ -e /tmp/over ]; do sleep 0.2; done"], resources: {limits: {nvidia.com/gpu: 1}}}
EOF
`, node, gpu.Smoke)
}

// scaled takes the GPU machines away and brings them back.
func scaled(t *testing.T, s *scene.Scene, server, one string) {
	t.Helper()
	s.Must(0, "scale", "gpu", "--to", "0", "--yes")
	if _, err := s.Lab.Get(t.Context(), one); err == nil {
		t.Errorf("%s is still rented after scaling to zero", one)
	}
	if _, there := s.Nodes()[one]; there {
		t.Errorf("%s is still a node", one)
	}
	mentions(t, "gpuctl.yaml", listed(t, s), "gpus: 0")
	back := s.Must(0, "scale", "gpu", "--to", "1", "--yes")
	mentions(t, "what scale says of machines", back.Stderr, "machine "+one+": added")
	settled(t, s, map[string]int{server: 0, one: 1})
}

// terraform is Terraform or OpenTofu of this computer, or an OpenTofu that is
// built once and kept.
func terraform(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"terraform", "tofu"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	cache, err := recipe.Open()
	if err != nil {
		t.Fatal(err)
	}
	src, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	dir, err := cache.Get(t.Context(), tofu.Recipe(src))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("OpenTofu took %s", time.Since(start).Round(time.Second))
	return filepath.Join(dir, "tofu")
}

// writeRented writes a gpuctl.yaml whose machines come from the root module.
func writeRented(t *testing.T, s *scene.Scene, program string, variables map[string]any) {
	t.Helper()
	data, err := yaml.Marshal(map[string]any{
		"apiVersion": "gpuctl.dev/v1alpha1", "kind": "Cluster", "metadata": map[string]any{"name": s.Name},
		"spec": map[string]any{
			"set": s.SetFile(nil), "ssh": map[string]any{"user": "ubuntu", "identityFile": s.Lab.Key()}, "sources": s.Lab.Sources(),
			"groups":       []map[string]any{{"name": "gpu", "hourly": 2.5, "terraformVariable": "gpus"}},
			"machinesFrom": map[string]any{"terraform": map[string]any{"dir": "infra", "binary": program, "variables": variables}},
		},
	})
	if err == nil {
		err = os.WriteFile(filepath.Join(s.Dir, "gpuctl.yaml"), data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// onServer tells the scene which machine is the server.
func onServer(t *testing.T, s *scene.Scene, name string) {
	t.Helper()
	m, err := s.Lab.Get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	s.OnServer(m)
}
