// Package providers is what is known of places that rent GPU machines: a first
// guess for gpuctl.yaml and a list of what to look at before committing. It never
// decides anything about a machine: the probe does.
//
// The facts are of September 2026, from the providers' own documentation and from
// the public code of dstack and SkyPilot, which rent there; what nobody confirmed
// is left out, and an empty field means that nothing is known.
package providers

import (
	"slices"
	"strings"
)

// Provider is one place that rents machines.
type Provider struct {
	// Name is what gpuctl.yaml and --provider say; Title is the name people know.
	Name  string `json:"name"`
	Title string `json:"title"`
	// Unit is what one gets: a VM, bare metal, a container.
	Unit string `json:"unit"`
	// Unfit says why no cluster can be made of what this provider rents; empty
	// where one can.
	Unfit string `json:"unfit,omitempty"`
	// User is the first login, where it is the same for all images.
	User string `json:"user,omitempty"`
	// Driver is what is on the machine on arrival.
	Driver string `json:"driver,omitempty"`
	// Network says what is open, and between which machines.
	Network string `json:"network,omitempty"`
	// RandomPorts: ports are mapped to others outside, so that machines do not
	// reach each other's: one machine makes a cluster, several do not.
	RandomPorts bool `json:"randomPorts,omitempty"`
	// NoForwarding: sshd forbids TCP forwarding on arrival; gpuctl relays the API
	// through a command instead, and jump hosts of this kind do not work.
	NoForwarding bool `json:"noForwarding,omitempty"`
	// Interconnect is what it takes to get the fast network between machines.
	Interconnect string `json:"interconnect,omitempty"`
	// Storage is what is special about disks.
	Storage string `json:"storage,omitempty"`
	// Spot is how a machine learns that it will be taken away.
	Spot Notice `json:"spot"`
	// Stop says what ends the bill.
	Stop Stop `json:"stop"`
	// Terraform is the address of its provider for Terraform.
	Terraform string `json:"terraform,omitempty"`
}

// Notice is the warning before a spot machine is taken away.
type Notice struct {
	// How the machine learns of it; empty: nothing is known, so count on none.
	How string `json:"how,omitempty"`
	// Seconds between notice and end, at most; 0 means none to count on.
	Seconds int `json:"seconds,omitempty"`
	// Left is what stays of the machine.
	Left string `json:"left,omitempty"`
}

// Stop is what powering off and stopping cost.
type Stop struct {
	// Poweroff is what shutting down from inside does to the bill.
	Poweroff string `json:"poweroff,omitempty"`
	// Ends is the only thing that ends paying for GPUs.
	Ends string `json:"ends,omitempty"`
	// Command does it, with NAME for the machine; empty where the provider's own
	// page or API has to be used.
	Command string `json:"command,omitempty"`
	// StillPaid is what is billed all the same.
	StillPaid string `json:"stillPaid,omitempty"`
}

// Find returns the provider of a name.
func Find(name string) (Provider, bool) {
	all := All()
	i := slices.IndexFunc(all, func(p Provider) bool { return p.Name == strings.ToLower(name) })
	if i < 0 {
		return Provider{}, false
	}
	return all[i], true
}

// Names are all names, in order.
func Names() []string {
	var out []string
	for _, p := range All() {
		out = append(out, p.Name)
	}
	return out
}
