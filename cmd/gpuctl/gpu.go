package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuctl/gpuctl/bootstrap"
	"github.com/gpuctl/gpuctl/internal/ui"
)

func newGPU(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "gpu",
		Short:   "Show the GPUs, share them between pods, count how many are needed",
		Example: "  gpuctl gpu list\n  gpuctl gpu share set --group h100 --time-slicing 4\n  gpuctl gpu pack -f workloads.yaml --gpu H100",
		Args:    knownCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newGPUList(a), newGPUShare(a), newGPUPack(a))
	return cmd
}

func newGPUList(a *app) *cobra.Command {
	wide := false
	return &cobra.Command{
		Use:   "list",
		Short: "Show each GPU: model, driver, sharing, users, health, proof",
		Long: `list asks every machine by SSH (index, model, driver, health) and the cluster by
its API (sharing, users, CUDA, proofs; how busy, from DCGM exporters). Where one of the two does not answer it
shows what the other tells, and says what is missing.

Which pod holds which GPU is known where a node has one GPU, one pod has all of
them, or a DCGM exporter names it; else the pods of the node are named with a question mark.`,
		Example: "  gpuctl gpu list\n  gpuctl gpu list -o wide\n  gpuctl gpu list -o json",
		Args:    wants(cobra.NoArgs),
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if wide = a.flags.output == "wide"; wide {
				a.flags.output = "text"
			}
			return a.checkFlags()
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withSession(cmd.Context(), need{verb: "gpu list", retryFor: briefly},
				func(ctx context.Context, s *session) error { return runGPUList(ctx, s, wide) })
		},
	}
}

func runGPUList(ctx context.Context, s *session, wide bool) error {
	result, err := s.engine.GPUs(ctx)
	if err != nil {
		return err
	}
	return s.finish(result, nil, func(w io.Writer) error { return gpuListText(w, result, wide) })
}

// gpuListText is one row for each GPU, and what could not be seen.
func gpuListText(out io.Writer, r bootstrap.GPUsResult, wide bool) error {
	head := []string{"NODE", "GPU", "MODEL", "MEMORY", "DRIVER", "CUDA", "MIG", "SHARING", "USED BY", "BUSY", "HEALTH", "PROVEN"}
	if wide {
		head = append(head, "RESOURCE", "PCI", "UUID")
	}
	rows := [][]string{head}
	for _, g := range r.GPUs {
		index, memory, proven := "?", "-", "no"
		if g.Index >= 0 {
			index = fmt.Sprint(g.Index)
		}
		if g.MemoryMiB > 0 {
			memory = fmt.Sprintf("%d MiB", g.MemoryMiB)
		}
		if g.ProvenAt != nil {
			proven = g.ProvenAt.UTC().Format(time.RFC3339)
		}
		row := []string{g.Node, index, ui.Clean(g.Model), memory, dash(g.Driver), dash(g.CUDA), dash(g.MIG), dash(g.Sharing),
			usersText(g, wide), busyText(g), ui.Clean(g.Health), proven}
		if wide {
			row = append(row, dash(g.Resource), dash(g.PCI), dash(g.UUID))
		}
		rows = append(rows, row)
	}
	w := &writer{w: out}
	if len(r.GPUs) == 0 {
		w.linef("%s: no GPU was seen", r.Cluster)
	} else {
		w.do(ui.Table(w, rows))
	}
	for _, m := range r.Missing {
		w.linef("not known: %s", ui.Clean(m))
	}
	return w.err
}

// busyText is the utilisation that DCGM tells.
func busyText(g bootstrap.GPUInfo) string {
	if g.Utilisation == nil {
		return "-"
	}
	return fmt.Sprintf("%d%%", *g.Utilisation)
}

// usersText names pods; a question mark says that the GPU may be another's.
func usersText(g bootstrap.GPUInfo, wide bool) string {
	users := g.Users
	if len(users) == 0 {
		if !g.UsersSure {
			return "?"
		}
		return "-"
	}
	text := strings.Join(users, ", ")
	if len(users) > 2 && !wide {
		text = fmt.Sprintf("%s and %d more", users[0], len(users)-1)
	}
	if !g.UsersSure {
		text += " ?"
	}
	return ui.Clean(text)
}
