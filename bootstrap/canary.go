package bootstrap

import (
	"slices"

	"github.com/gpuctl/gpuctl/bootstrap/nvidia"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/internal/inventory"
)

// canary lets one running node of a group get another driver first: the others
// are drained only when that one has proven its GPUs and takes work again. A
// driver that does not serve costs one node then, not all.
func (w wanted) canary(s sight, actions []plan.Action) []plan.Action {
	first := map[string]inventory.Machine{}
	for _, begun := range []bool{true, false} { // one that an earlier run had begun goes on first
		for _, m := range w.byRole() {
			if _, chosen := first[m.Group]; !chosen && w.changing(m, s, actions, begun) {
				first[m.Group] = m
			}
		}
	}
	actions = slices.Clone(actions)
	for i, a := range actions {
		if a.ID != drainID(a.Machine) || !slices.ContainsFunc(actions, func(b plan.Action) bool { return b.ID == nvidia.DriverID(a.Machine) }) {
			continue
		}
		c, ok := first[w.groupOf(a.Machine)]
		if !ok || c.Name == a.Machine {
			continue
		}
		actions[i].Reason += "; after " + c.Name + " of its group, which proves the driver first"
		actions[i].Needs = append(slices.Clone(a.Needs), smokeID(c.Name), openID(c.Name))
	}
	return actions
}

// changing says whether a running node is on its way to another driver: drained
// for it already, or to be drained.
func (w wanted) changing(m inventory.Machine, s sight, actions []plan.Action, begun bool) bool {
	pending := func(id string) bool {
		return slices.ContainsFunc(actions, func(a plan.Action) bool { return a.ID == id })
	}
	node, joined := s.cluster.state.Node(m.Name)
	if !joined {
		return false
	}
	if begun {
		return node.Annotations[drainedAnnotation] != "" && (pending(smokeID(m.Name)) || pending(openID(m.Name)))
	}
	return pending(drainID(m.Name)) && pending(nvidia.DriverID(m.Name))
}

// byRole are the machines, those without the control plane first.
func (w wanted) byRole() []inventory.Machine {
	var agents, servers []inventory.Machine
	for _, m := range w.machines {
		if m.Role == inventory.Server {
			servers = append(servers, m)
		} else {
			agents = append(agents, m)
		}
	}
	return append(agents, servers...)
}

func (w wanted) groupOf(machine string) string {
	for _, m := range w.machines {
		if m.Name == machine {
			return m.Group
		}
	}
	return ""
}
