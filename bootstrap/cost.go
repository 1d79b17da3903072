package bootstrap

import (
	"context"
	"fmt"
	"time"

	"github.com/gpuctl/gpuctl/internal/kube"
)

// CostResult is what the machines of a cluster cost and which of them do nothing.
// Prices are those of gpuctl.yaml (groups[].hourly), in the currency its owner
// thinks in.
type CostResult struct {
	Cluster string `json:"cluster"`
	// PerHour adds up the machines with a price; Unpriced are those without.
	PerHour  float64  `json:"perHour"`
	Unpriced []string `json:"unpriced,omitempty"`
	// IdlePerHour is the part of PerHour for GPUs that no pod has asked for.
	IdlePerHour float64 `json:"idlePerHour"`
	// IdleShare is IdlePerHour / PerHour, 0 to 1.
	IdleShare float64 `json:"idleShare"`
	// Since is when the oldest node joined, Spent what the machines that are nodes
	// now have cost since each of them joined: machines that are gone are not in it.
	Since *time.Time `json:"since,omitempty"`
	Spent float64    `json:"spent"`
	// Machines are those of gpuctl.yaml, then nodes that it does not list.
	Machines []MachineCost `json:"machines"`
	// Notes say why utilisation is not known somewhere.
	Notes []string `json:"notes,omitempty"`
}

// MachineCost is one machine.
type MachineCost struct {
	Name  string `json:"name"`
	Role  string `json:"role"`
	Group string `json:"group,omitempty"`
	// Hourly is nil where the file names no price.
	Hourly *float64 `json:"hourly,omitempty"`
	// Joined: it is a node. A machine that is none costs all the same.
	Joined bool `json:"joined"`
	// Allocatable and InUse count what pods can ask for and what they have asked for.
	Allocatable int64 `json:"allocatable"`
	InUse       int64 `json:"inUse"`
	// Utilisation is how busy its GPUs are now, in percent, their mean; nil where the
	// DCGM exporter does not tell.
	Utilisation *int `json:"utilisation,omitempty"`
	// Idle: it has GPUs and no pod has asked for any.
	Idle bool `json:"idle"`
	// IdleSince is when the last pod with GPUs ended there; nil where the API does
	// not show that any more.
	IdleSince *time.Time `json:"idleSince,omitempty"`
	// FirstSeenIdle is when gpuctl first saw it idle, where IdleSince is not known.
	FirstSeenIdle *time.Time `json:"firstSeenIdle,omitempty"`
	// Spent is Hourly times the hours since it joined.
	Spent float64 `json:"spent"`
}

// IdleFor is how long a machine has been idle at least; 0 for one that is not,
// and for one that is seen idle for the first time.
func (m MachineCost) IdleFor(now time.Time) time.Duration {
	switch {
	case !m.Idle:
		return 0
	case m.IdleSince != nil:
		return now.Sub(*m.IdleSince)
	case m.FirstSeenIdle != nil:
		return now.Sub(*m.FirstSeenIdle)
	}
	return 0
}

// Cost asks the cluster, and no machine but the server on the way.
func (e *Engine) Cost(ctx context.Context, now time.Time) (CostResult, error) {
	s, err := e.observeAPI(ctx)
	if err != nil {
		return CostResult{Cluster: e.settings.Inventory.Cluster, Machines: []MachineCost{}}, err
	}
	client, _, err := e.api.connect(ctx)
	if err != nil {
		return CostResult{}, err
	}
	ends, err := client.LastGPUEnds(ctx)
	if err != nil {
		return CostResult{}, fmt.Errorf("looking for pods that have ended: %w", err)
	}
	r := e.want.cost(e.nodeViews(s), s.cluster.state, ends, now)
	loads, notes := e.loadsByNode(ctx, s)
	for i := range r.Machines {
		r.Machines[i].Utilisation = mean(loads[r.Machines[i].Name])
	}
	r.Notes = notes
	return r, nil
}

// cost is a pure function.
func (w wanted) cost(views []NodeView, state kube.State, ends map[string]time.Time, now time.Time) CostResult {
	r := CostResult{Cluster: w.config.Metadata.Name, Machines: []MachineCost{}}
	seen := map[string]NodeView{}
	for _, v := range views {
		seen[v.Name] = v
	}
	listed := map[string]bool{}
	for _, m := range w.machines {
		listed[m.Name] = true
		c := MachineCost{Name: m.Name, Role: string(m.Role), Group: m.Group}
		if price := w.config.Group(m.Group).Hourly; price > 0 {
			c.Hourly = &price
		}
		r.add(c, seen[m.Name], state, ends, now)
	}
	for _, v := range views {
		if !listed[v.Name] {
			r.add(MachineCost{Name: v.Name, Role: v.Role}, v, state, ends, now)
		}
	}
	if r.PerHour > 0 {
		r.IdleShare = r.IdlePerHour / r.PerHour
	}
	return r
}

func (r *CostResult) add(c MachineCost, v NodeView, state kube.State, ends map[string]time.Time, now time.Time) {
	c.Joined, c.Allocatable, c.InUse = v.Name != "", v.Allocatable, v.InUse
	c.Idle = c.Allocatable > 0 && c.InUse == 0
	if end, known := ends[c.Name]; c.Idle && known {
		c.IdleSince = &end
	}
	node, _ := state.Node(c.Name)
	if joined := node.Created; c.Joined && !joined.IsZero() && (r.Since == nil || joined.Before(*r.Since)) {
		r.Since = &joined
	}
	if c.Hourly == nil {
		r.Unpriced = append(r.Unpriced, c.Name)
	} else {
		r.PerHour += *c.Hourly
		if c.Allocatable > 0 {
			r.IdlePerHour += *c.Hourly * float64(max(0, c.Allocatable-c.InUse)) / float64(c.Allocatable)
		}
		if c.Joined && !node.Created.IsZero() {
			c.Spent = *c.Hourly * now.Sub(node.Created).Hours()
		}
	}
	r.Spent += c.Spent
	r.Machines = append(r.Machines, c)
}
