//go:build lab && full

package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

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
	s.Must(0, "scale", "gpu", "--to", "1", "--yes")
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
