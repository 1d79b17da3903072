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
		Long: `reset uninstalls k3s and what gpuctl laid beside it: services, mounts, interfaces,
packet filter rules, files, tokens, certificates and the node's password. An
uninstall script of k3s's own installer is used where there is one, and what it
leaves is removed. It works on a machine whose installation was cut off, and
while the API is dead. Single nodes are drained and leave the cluster first.

The Container Toolkit stays, and so does the driver unless --driver says
otherwise; a driver that came with the machine's image always stays.

It shows what it will destroy and asks.`,
		Example: "  gpuctl reset\n  gpuctl reset --nodes gpu-3 --yes\n  gpuctl reset --driver",
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
	if err != nil && result.Cluster == "" {
		return err
	}
	return s.finish(result, err, func(w io.Writer) error { return s.outcomesText(w, result, err) })
}
