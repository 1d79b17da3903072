package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/gpuctl/gpuctl/bootstrap"
)

func newSmoke(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "smoke",
		Short: "Prove the GPUs again",
		Long: `smoke runs the acceptance ladder on every node with GPUs: the counts agree, a pod
sees its GPUs, and a pod that takes all free GPUs of a node computes on each of
them. GPUs that other pods hold are in use and are not tested.

Exit code 6: a node failed.`,
		Example: "  gpuctl smoke\n  gpuctl smoke --nodes gpu-1 -o json",
		Args:    wants(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withSession(cmd.Context(), need{verb: "smoke", lock: true, record: true, retryFor: briefly}, runSmoke)
		},
	}
}

func runSmoke(ctx context.Context, s *session) error {
	result, err := s.engine.Smoke(ctx, bootstrap.SmokeOptions{Nodes: s.flags.nodes})
	if err != nil && len(result.Nodes) == 0 {
		return err
	}
	return s.finish(result, err, func(w io.Writer) error { return s.smokeText(w, result) })
}
