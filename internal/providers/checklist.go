package providers

import "fmt"

// Item is one thing to verify before committing to a provider or a term.
type Item struct {
	// Topic is one of: control plane, driver, MIG, network, interconnect, storage, spot, stopping.
	Topic string `json:"topic"`
	// Ask is what to find out; Known is what this package knows of it.
	Ask   string `json:"ask"`
	Known string `json:"known,omitempty"`
}

// Checklist is what to verify before committing, with what is known of p. The
// zero Provider stands for one that is not known.
func (p Provider) Checklist() []Item {
	return []Item{
		{"control plane", "is Kubernetes managed by them, or on machines of yours? gpuctl makes your own, on one of the machines", p.managed()},
		{"driver", "which NVIDIA driver is on arrival, and may you change it?", p.Driver},
		{"MIG", "may you turn MIG on? It takes root on a whole GPU, not a slice", ""},
		{"network", "do the machines reach each other on all ports? what comes in from outside?", p.reach()},
		{"interconnect", "InfiniBand, RoCE or EFA between machines, and what does it take to get it?", p.Interconnect},
		{"storage", "how large is the root disk, what is lost on stop, is there shared storage?", p.Storage},
		{"spot", "how long before the end does a machine learn of it?", p.notice()},
		{"stopping", "what ends the bill, and what is billed all the same?", p.stopping()},
	}
}

func (p Provider) managed() string {
	if p.Unit == "" {
		return ""
	}
	return "rents: " + p.Unit
}

func (p Provider) reach() string {
	text := p.Network
	if p.NoForwarding {
		if text != "" {
			text += "; "
		}
		text += "sshd forbids TCP forwarding on arrival (gpuctl works all the same)"
	}
	return text
}

func (p Provider) notice() string {
	switch {
	case p.Spot.Seconds > 0:
		return fmt.Sprintf("%d s at most: %s; then %s", p.Spot.Seconds, p.Spot.How, p.Spot.Left)
	case p.Spot.Left != "":
		return "no notice is known; " + p.Spot.Left
	case p.Name != "":
		return "no notice is known: count on none"
	}
	return ""
}

func (p Provider) stopping() string {
	s := p.Stop
	if s.Ends == "" {
		return ""
	}
	text := s.Ends + " ends it"
	if s.Poweroff != "" {
		text += "; powering off from inside: " + s.Poweroff
	}
	if s.StillPaid != "" {
		text += "; still billed: " + s.StillPaid
	}
	return text
}
