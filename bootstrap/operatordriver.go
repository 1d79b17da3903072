package bootstrap

import (
	"maps"
	"path"
	"slices"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/bootstrap/k3s"
	"github.com/gpuctl/gpuctl/bootstrap/nvidia"
	"github.com/gpuctl/gpuctl/charts"
	"github.com/gpuctl/gpuctl/internal/config"
	"github.com/gpuctl/gpuctl/internal/inventory"
)

// operatorGroup is a group whose driver and toolkit the GPU Operator brings; ok
// is false where no machine is of one.
func (w wanted) operatorGroup() (group config.Group, ok bool) {
	for _, m := range w.machines {
		if g := w.config.Group(m.Group); g.Driver.Mode == nvidia.ModeOperator {
			return g, true
		}
	}
	return config.Group{}, false
}

// withDriver are the operator's values as far as its driver goes: one for all
// nodes that it serves, of the set's branch where the group names none.
func (w wanted) withDriver(want charts.Want, s sight) charts.Want {
	g, ok := w.operatorGroup()
	if !ok {
		return want
	}
	branch := g.Driver.Branch
	if branch == "" {
		branch = w.set.Driver.Branch
	}
	want.OperatorDriver, want.DriverVersion = true, w.set.Driver.Images.Version(branch)
	if g.Driver.Modules != "auto" {
		want.DriverModules = g.Driver.Modules
	}
	want.ContainerdConfig = w.containerdConfig(s)
	return want
}

// containerdConfig is k3s's own file for the operator's toolkit where a machine
// that it serves has a second engine: on the PATH it would find that one's. What a
// release has already stays while a machine is not seen.
func (w wanted) containerdConfig(s sight) string {
	for _, m := range w.machines {
		if w.config.Group(m.Group).Driver.Mode != nvidia.ModeOperator {
			continue
		}
		facts, seen := s.facts[m.Name]
		if !seen || facts.Others.Unsure() {
			if was := envOf(s.cluster.release.Values, "CONTAINERD_CONFIG"); was != "" {
				return was
			}
			continue
		}
		if secondEngine(facts) {
			dir := m.DataDir
			if dir == "" {
				dir = k3s.DefaultDataDir
			}
			return path.Join(dir, charts.K3sContainerdConfig)
		}
	}
	return ""
}

// secondEngine: a container engine runs beside the cluster's.
func secondEngine(f host.Facts) bool {
	return slices.ContainsFunc(f.Others.Value, func(o host.Other) bool {
		return o.Running && (o.Name == "docker" || o.Name == "containerd")
	})
}

// envOf is a variable of the toolkit among a release's values.
func envOf(values map[string]any, name string) string {
	toolkit, _ := values["toolkit"].(map[string]any)
	list, _ := toolkit["env"].([]any)
	for _, v := range list {
		if pair, _ := v.(map[string]any); pair["name"] == name {
			text, _ := pair["value"].(string)
			return text
		}
	}
	return ""
}

// deployLabels keep the operator's driver and toolkit off the nodes of machines
// that have their own, where the operator brings both to others.
func (w wanted) deployLabels(m inventory.Machine, s sight) map[string]string {
	if _, mixed := w.operatorGroup(); !mixed || w.config.Group(m.Group).Driver.Mode == nvidia.ModeOperator {
		return nil
	}
	if len(nvidia.GPUs(s.facts[m.Name])) == 0 {
		return nil
	}
	return nvidia.OperatorLabels()
}

// marked is a machine's group with every label that its node is to have.
func (w wanted) marked(m inventory.Machine, s sight) config.Group {
	group := w.config.Group(m.Group)
	if more := w.deployLabels(m, s); more != nil {
		labels := maps.Clone(group.Labels)
		if labels == nil {
			labels = map[string]string{}
		}
		maps.Copy(labels, more)
		group.Labels = labels
	}
	return group
}

// labelled are the pending actions after which nodes that have joined say what the
// operator is to leave alone; new ones register with it.
func (w wanted) labelled(b *book, s sight) []string {
	if _, mixed := w.operatorGroup(); !mixed {
		return nil
	}
	var ids []string
	for _, a := range b.actions {
		if _, joined := s.cluster.state.Node(a.Machine); joined && a.ID == labelsID(a.Machine) {
			ids = append(ids, a.ID)
		}
	}
	return ids
}
