package main

import (
	"github.com/gpuctl/gpuctl/provision"
)

// sayInventory tells what has changed in machines that come from Terraform since
// the last run that did something, and remembers them. What is gone from the
// output stays in the cluster until someone removes it.
func (s *session) sayInventory() error {
	if s.config.Spec.MachinesFrom == nil {
		return nil
	}
	before, known, err := s.state.Inventory()
	if err != nil {
		known = false // a cache: what cannot be read is written anew
	}
	if known {
		w := &writer{w: s.err}
		all := provision.Compare(before, s.inventory.Machines)
		differencesText(w, all)
		for _, d := range all {
			if d.Kind == "gone" {
				w.linef("%s stays a node until you say: %s", d.Name, s.command("node remove "+d.Name))
			}
		}
		if w.err != nil {
			return w.err
		}
	}
	return s.state.KeepInventory(s.inventory.Machines)
}
