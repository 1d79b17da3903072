package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/gpuctl/gpuctl/bootstrap"
)

func newReset(a *app) *cobra.Command {
	var driver bool
	cmd := &cobra.Command{
		Use:   "reset",
		Short: "Take the cluster, or the nodes of --nodes, apart",
		Long: `reset drains nodes, takes them out of the cluster and uninstalls k3s and what
gpuctl laid beside it. It shows what it will destroy and asks.`,
		Example: "  gpuctl reset\n  gpuctl reset --nodes gpu-3 --yes",
		Args:    wants(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withSession(cmd.Context(), need{verb: "reset", lock: true, record: true, retryFor: patience},
				func(ctx context.Context, s *session) error { return runReset(ctx, s, driver) })
		},
	}
	cmd.Flags().BoolVar(&driver, "driver", false, "also remove the NVIDIA driver where gpuctl installed it")
	return cmd
}

func runReset(ctx context.Context, s *session, driver bool) error {
	result, err := s.engine.Reset(ctx, bootstrap.ResetOptions{Nodes: s.flags.nodes, Driver: driver, Confirm: s.confirm()})
	if err != nil && len(result.Machines) == 0 {
		return err
	}
	return s.finish(result, err, func(w io.Writer) error { return s.outcomesText(w, result) })
}
