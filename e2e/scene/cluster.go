package scene

import (
	"maps"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"

	"github.com/gpuctl/gpuctl/e2e/lab/machine"
)

// Member is a machine's place in gpuctl.yaml.
type Member struct {
	*machine.Machine
	// GPUs is how many were promised; negative leaves it unsaid.
	GPUs int
	// More are further fields of the machine.
	More map[string]any
}

// Cluster is the content of gpuctl.yaml. The first member is the server.
type Cluster struct {
	Members []Member
	// User is ubuntu if empty.
	User string
	// SSH are further fields of spec.ssh.
	SSH map[string]any
	// Set is the lab's own if empty.
	Set string
	// Spec are further fields of spec.
	Spec map[string]any
}

// Write writes gpuctl.yaml.
func (s *Scene) Write(c Cluster) {
	s.t.Helper()
	if c.Set == "" {
		c.Set = s.SetFile(nil)
	}
	if c.User == "" {
		c.User = "ubuntu"
	}
	ssh := map[string]any{"user": c.User, "identityFile": s.Lab.Key()}
	maps.Copy(ssh, c.SSH)
	s.server = c.Members[0].Machine
	var machines []map[string]any
	for i, m := range c.Members {
		entry := map[string]any{"name": m.Name, "host": m.IP, "port": m.Port, "role": "agent"}
		if i == 0 {
			entry["role"] = "server"
		}
		if m.GPUs >= 0 {
			entry["gpus"] = m.GPUs
		}
		maps.Copy(entry, m.More)
		machines = append(machines, entry)
	}
	spec := map[string]any{"set": c.Set, "ssh": ssh, "sources": s.Lab.Sources(), "machines": machines}
	maps.Copy(spec, c.Spec)
	data, err := yaml.Marshal(map[string]any{
		"apiVersion": "gpuctl.dev/v1alpha1", "kind": "Cluster", "metadata": map[string]any{"name": s.Name}, "spec": spec,
	})
	if err == nil {
		err = os.WriteFile(filepath.Join(s.Dir, "gpuctl.yaml"), data, 0o644)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// SetFile writes the lab's set of versions, changed by change, into the scene
// and returns its path.
func (s *Scene) SetFile(change func(set map[string]any)) string {
	s.t.Helper()
	path, err := s.Lab.SetFile()
	if err != nil {
		s.t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	var set map[string]any
	if err := yaml.Unmarshal(data, &set); err != nil {
		s.t.Fatal(err)
	}
	own := filepath.Join(s.Dir, "set.yaml")
	if change != nil {
		change(set)
		own = filepath.Join(s.Dir, "set-changed.yaml")
	}
	if data, err = yaml.Marshal(set); err == nil {
		err = os.WriteFile(own, data, 0o644)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return own
}

// OnServer says which machine is the server, for a gpuctl.yaml that Write did not write.
func (s *Scene) OnServer(m *machine.Machine) { s.server = m }
