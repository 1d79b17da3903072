package bootstrap

import (
	"maps"

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
func (w wanted) withDriver(want charts.Want) charts.Want {
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
	return want
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
