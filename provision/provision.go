// Package provision says where the machines of a cluster come from: a list in a
// file, or an output of Terraform or OpenTofu. It ends where the inventory
// begins and knows nothing of what is done with the machines.
package provision

import (
	"context"

	"github.com/gpuctl/gpuctl/internal/inventory"
)

// Found is what a source knows of its machines.
type Found struct {
	Machines []inventory.Machine
	// Skipped are entries that cannot be used as they are now: stopped, or without an address.
	Skipped []Skipped
	// Others are further outputs of a root module, by name; their values stay there.
	Others []Other
}

// Other is an output that lists no machines.
type Other struct {
	Name      string `json:"name"`
	Sensitive bool   `json:"sensitive,omitempty"`
}

// Skipped is an entry that is no machine to connect to, and why.
type Skipped struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// Source finds machines.
type Source interface {
	Find(context.Context) (Found, error)
}

// Static is a list of machines that is known already.
type Static []inventory.Machine

// Find returns the list.
func (s Static) Find(context.Context) (Found, error) { return Found{Machines: s}, nil }
