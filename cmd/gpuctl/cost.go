package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuctl/gpuctl/bootstrap"
	"github.com/gpuctl/gpuctl/internal/providers"
	"github.com/gpuctl/gpuctl/internal/ui"
)

// costEngine is what cost asks of package bootstrap.
type costEngine interface {
	// Cost says what machines cost and which are idle.
	Cost(ctx context.Context, now time.Time) (bootstrap.CostResult, error)
}

func newCost(a *app) *cobra.Command {
	var idleFor time.Duration
	cmd := &cobra.Command{
		Use:   "cost",
		Short: "Show what the machines cost and which of them are idle",
		Long: `cost adds up the prices of gpuctl.yaml (groups[].hourly) and shows which machines
have GPUs that no pod has asked for, and since when as far as the API still shows
it: a pod that has ended is deleted sooner or later. Where it does not, cost counts
from when it first saw the machine idle, so run it now and then.

Where NVIDIA's DCGM exporter runs (the GPU Operator brings it), it also shows how busy
the GPUs are: a pod may hold GPUs and not use them. With spec.provider it says
what really ends the bill there: powering off saves nothing at several of them.`,
		Example: "  gpuctl cost\n  gpuctl cost --idle-for 30m -o json",
		Args:    wants(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if idleFor < 0 {
				return usagef("--idle-for %s is negative", idleFor)
			}
			return a.withSession(cmd.Context(), need{verb: "cost", retryFor: briefly},
				func(ctx context.Context, s *session) error { return runCost(ctx, s, idleFor) })
		},
	}
	cmd.Flags().DurationVar(&idleFor, "idle-for", 0, "only machines that have been idle for this `time`, such as 30m")
	return cmd
}

// costView is the result with what ends the bill.
type costView struct {
	bootstrap.CostResult
	// Stop is what the provider's documentation says of stopping, where it is known.
	Stop *providers.Stop `json:"stop,omitempty"`
}

func runCost(ctx context.Context, s *session, idleFor time.Duration) error {
	now := time.Now().UTC()
	result, err := s.engine.Cost(ctx, now)
	if err != nil {
		return err
	}
	if err := s.firstSeen(&result, now); err != nil {
		return err
	}
	v := costView{CostResult: result}
	if p, ok := providers.Find(s.config.Spec.Provider); ok && p.Stop.Ends != "" {
		v.Stop = &p.Stop
	}
	if idleFor > 0 {
		v.Machines = []bootstrap.MachineCost{}
		for _, m := range result.Machines {
			if m.IdleFor(now) >= idleFor {
				v.Machines = append(v.Machines, m)
			}
		}
	}
	return s.finish(v, nil, func(out io.Writer) error { return s.costText(out, v, now) })
}

// firstSeen remembers since when machines are seen idle, where the API does not say.
func (s *session) firstSeen(r *bootstrap.CostResult, now time.Time) error {
	before, err := s.state.Idle()
	if err != nil {
		before = nil // a cache: what cannot be read is written anew
	}
	idle := map[string]time.Time{}
	for i := range r.Machines {
		m := &r.Machines[i]
		if !m.Idle {
			continue
		}
		at, known := before[m.Name]
		if !known || at.After(now) {
			at = now
		}
		idle[m.Name] = at
		if m.IdleSince == nil {
			m.FirstSeenIdle = &at
		}
	}
	return s.state.KeepIdle(idle)
}

func (s *session) costText(out io.Writer, v costView, now time.Time) error {
	w := &writer{w: out}
	rows := [][]string{{"MACHINE", "ROLE", "GROUP", "PER HOUR", "GPUS", "IN USE", "BUSY", "IDLE"}}
	for _, m := range v.Machines {
		price := "-"
		if m.Hourly != nil {
			price = money(*m.Hourly)
		}
		busy := "-"
		if m.Utilisation != nil {
			busy = fmt.Sprintf("%d%%", *m.Utilisation)
		}
		rows = append(rows, []string{m.Name, m.Role, dash(m.Group), price, fmt.Sprint(m.Allocatable), fmt.Sprint(m.InUse), busy, idleText(m, now)})
	}
	w.do(ui.Table(w, rows))
	w.gap()
	if v.PerHour > 0 {
		w.linef("%s per hour, %s of it (%.0f%%) for GPUs that no pod has asked for", money(v.PerHour), money(v.IdlePerHour), 100*v.IdleShare)
	}
	if v.Since != nil && v.Spent > 0 {
		w.linef("%s since %s, for the machines that are nodes now", money(v.Spent), v.Since.UTC().Format(time.RFC3339))
	}
	if len(v.Unpriced) > 0 {
		w.linef("without a price: %d machines; give their groups an hourly", len(v.Unpriced))
	}
	for _, n := range v.Notes {
		w.linef("%s", ui.Clean(n))
	}
	if v.Stop != nil {
		w.linef("what ends the bill there: %s", v.Stop.Ends)
		if v.Stop.Command != "" {
			w.linef("  %s", v.Stop.Command)
		}
		if v.Stop.Poweroff != "" {
			w.linef("  powering off from inside: %s", v.Stop.Poweroff)
		}
		if v.Stop.StillPaid != "" {
			w.linef("  still billed: %s", v.Stop.StillPaid)
		}
	}
	return w.err
}

func idleText(m bootstrap.MachineCost, now time.Time) string {
	switch {
	case !m.Joined:
		return "no node"
	case m.Allocatable == 0:
		return "-"
	case !m.Idle:
		return "no"
	case m.IdleSince != nil:
		return "for " + ui.Duration(m.IdleFor(now))
	}
	return "since unknown, first seen " + m.FirstSeenIdle.UTC().Format(time.RFC3339)
}

func money(f float64) string { return fmt.Sprintf("%.2f", f) }
