package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuctl/gpuctl/bootstrap"
	"github.com/gpuctl/gpuctl/internal/config"
	"github.com/gpuctl/gpuctl/internal/pack"
	"github.com/gpuctl/gpuctl/internal/ui"
)

// packOptions are the flags of gpu pack.
type packOptions struct {
	file   string
	models []string
	hourly float64
}

func newGPUPack(a *app) *cobra.Command {
	var o packOptions
	cmd := &cobra.Command{
		Use:   "pack -f WORKLOADS",
		Short: "Say how many cards a set of workloads needs, by each way to share",
		Long: `pack reads from a file what workloads say they need and computes how many cards that takes
exclusively, by time-slicing, by MPS and by MIG. It measures nothing: each way's
assumptions stand under its numbers.

Cards are those that --gpu names; without it those of the cluster, else the
gpuModel of the machines in gpuctl.yaml. A price for each card and hour comes from
--hourly, or from groups[].hourly and the number of GPUs of a machine.

  workloads:
    - {name: embed, memory: 6GiB, compute: 10%, replicas: 8}
    - {name: chat, memory: 38GiB, compute: 0.5, replicas: 2}`,
		Example: "  gpuctl gpu pack -f workloads.yaml --gpu H100\n  gpuctl gpu pack -f workloads.yaml --gpu \"A100 80GB\" --gpu L40S --hourly 1.9\n  gpuctl gpu pack -f workloads.yaml -o json\n  gpuctl gpu pack --workloads workloads.yaml -f other-cluster.yaml",
		Args:    wants(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file := cmd.Flags().Lookup("file"); o.file == "" && file.Changed {
				o.file, a.flags.file = a.flags.file, file.DefValue
			}
			return a.pack(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.file, "workloads", "", "the `file` of workloads, where -f names another gpuctl.yaml")
	f.StringArrayVar(&o.models, "gpu", nil, "a `model` of GPU; may be given more than once")
	f.Float64Var(&o.hourly, "hourly", 0, "the `price` of one card for an hour")
	return cmd
}

func (a *app) pack(ctx context.Context, o packOptions) error {
	switch {
	case o.file == "":
		return usagef("-f is missing: a file with a list of {name, memory, compute, replicas}")
	case o.hourly < 0:
		return usagef("--hourly %g is no price", o.hourly)
	}
	data, err := os.ReadFile(o.file)
	if errors.Is(err, fs.ErrNotExist) {
		return usagef("there is no %s here", o.file)
	}
	if err != nil {
		return err
	}
	workloads, err := pack.Read(data, o.file)
	if err != nil {
		return &usageError{err}
	}
	if len(o.models) == 0 {
		return a.withSession(ctx, need{verb: "gpu pack", retryFor: briefly}, func(ctx context.Context, s *session) error {
			cards, err := s.cards(ctx, o.hourly)
			if err != nil {
				return err
			}
			return a.showPack(workloads, cards)
		})
	}
	var cards []pack.Card
	for _, model := range o.models {
		c, err := pack.Find(model)
		if err != nil {
			return usagef("--gpu: %s", err)
		}
		c.Hourly = o.hourly
		cards = append(cards, c)
	}
	return a.showPack(workloads, cards)
}

// cards are the models that the cluster has, or that gpuctl.yaml promises.
func (s *session) cards(ctx context.Context, hourly float64) ([]pack.Card, error) {
	seen, err := s.engine.GPUs(ctx)
	if err != nil && len(seen.GPUs) == 0 {
		seen = bootstrap.GPUsResult{}
	}
	var cards []pack.Card
	var unknown []string
	have := map[string]bool{}
	add := func(model, machine string, memoryMiB int64) {
		if model == "" || have[model] {
			return
		}
		have[model] = true
		c, err := pack.Find(model)
		if err != nil && memoryMiB == 0 {
			unknown = append(unknown, err.Error())
			return
		}
		if c.Model = model; memoryMiB > 0 {
			c.MemoryMiB = memoryMiB
		}
		if c.Hourly = hourly; hourly == 0 {
			m, _ := s.inventory.Find(machine)
			c.Hourly = perCard(s.config.Group(m.Group), m.GPUs)
		}
		cards = append(cards, c)
	}
	for _, g := range seen.GPUs {
		add(g.Model, g.Node, g.MemoryMiB)
	}
	for _, m := range s.inventory.Machines {
		if len(cards) == 0 || len(seen.GPUs) == 0 {
			add(m.GPUModel, m.Name, 0)
		}
	}
	if len(cards) == 0 {
		return nil, usagef("no GPU is known of this cluster%s: name a model by --gpu", strings.Join(append([]string{""}, unknown...), "; "))
	}
	return cards, nil
}

// perCard is a machine's price divided by its GPUs, 0 where either is not known.
func perCard(g config.Group, gpus *int) float64 {
	if gpus == nil || *gpus < 1 {
		return 0
	}
	return g.Hourly / float64(*gpus)
}

// packView is the result. Its JSON is a promise.
type packView struct {
	Workloads []pack.Workload `json:"workloads"`
	GPUs      []pack.Result   `json:"gpus"`
}

func (a *app) showPack(workloads []pack.Workload, cards []pack.Card) error {
	view := packView{Workloads: workloads}
	for _, c := range cards {
		view.GPUs = append(view.GPUs, pack.Plan(workloads, c))
	}
	return a.show(view, func(w io.Writer) error { return packText(w, view) })
}

func packText(out io.Writer, view packView) error {
	w := &writer{w: out}
	for i, r := range view.GPUs {
		if i > 0 {
			w.linef("")
		}
		w.linef("%s, %d MiB", ui.Clean(r.Model), r.MemoryMiB)
		rows := [][]string{{"", "CARDS", "PER HOUR", "groups[].sharing", "WHAT STANDS ON THEM"}}
		for _, k := range r.Kinds {
			rows = append(rows, kindRow(k))
		}
		w.do(ui.Table(w, rows))
		for _, k := range r.Kinds {
			for _, u := range k.Unfit {
				w.linef("does not fit, %s: %s %s", k.Name, ui.Clean(u.Name), u.Why)
			}
		}
		for _, k := range r.Kinds {
			for _, assumption := range k.Assumptions {
				w.linef("%s: %s", k.Name, assumption)
			}
		}
	}
	return w.err
}

func kindRow(k pack.Kind) []string {
	if k.Impossible != "" {
		return []string{k.Name, "-", "-", "-", k.Impossible}
	}
	price := "-"
	if k.Hourly > 0 {
		price = fmt.Sprintf("%.2f", k.Hourly)
	}
	var parts []string
	for _, f := range k.Layout {
		parts = append(parts, fmt.Sprintf("%d of (%s)", f.Cards, strings.Join(f.Pods, ", ")))
	}
	return []string{k.Name, fmt.Sprint(k.Cards), price, dash(k.Setting), ui.Clean(dash(strings.Join(parts, "; ")))}
}
