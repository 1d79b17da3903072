package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"
)

func newStatus(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "status",
		Short:   "Show the cluster: nodes, GPUs, what is in use, what is proven",
		Example: "  gpuctl status\n  gpuctl status -o json",
		Args:    wants(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withSession(cmd.Context(), need{verb: "status", retryFor: briefly}, runStatus)
		},
	}
}

func runStatus(ctx context.Context, s *session) error {
	result, err := s.engine.Status(ctx)
	if err != nil && len(result.Nodes) == 0 {
		return err
	}
	return s.finish(result, err, func(w io.Writer) error { return s.statusText(w, result) })
}
