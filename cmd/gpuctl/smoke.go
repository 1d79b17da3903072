package main

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/gpuctl/gpuctl/bootstrap"
	"github.com/gpuctl/gpuctl/internal/smoke"
)

func newSmoke(a *app) *cobra.Command {
	var junit string
	cmd := &cobra.Command{
		Use:   "smoke",
		Short: "Prove the GPUs again",
		Long: `smoke runs the acceptance ladder on every node with GPUs: the counts agree, a pod
sees its GPUs, and a pod that takes all free GPUs of a node computes on each of
them. GPUs that other pods hold are in use and are not tested. Each step says how
long it took, the waiting for its pod included.

Exit code 6: a node failed.`,
		Example: "  gpuctl smoke\n  gpuctl smoke --nodes gpu-1 -o json\n  gpuctl smoke --junit smoke.xml",
		Args:    wants(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withSession(cmd.Context(), need{verb: "smoke", lock: true, record: true, retryFor: briefly},
				func(ctx context.Context, s *session) error { return runSmoke(ctx, s, junit) })
		},
	}
	cmd.Flags().StringVar(&junit, "junit", "", "also write the result as JUnit XML to this `file`: a case per step and GPU")
	return cmd
}

func runSmoke(ctx context.Context, s *session, junit string) error {
	result, err := s.engine.Smoke(ctx, bootstrap.SmokeOptions{Nodes: s.flags.nodes})
	if err != nil && len(result.Nodes) == 0 {
		return err
	}
	if junit != "" {
		data, failed := smoke.JUnit(result.Reports...)
		if failed == nil {
			failed = os.WriteFile(junit, data, 0o644)
		}
		err = errors.Join(err, failed)
	}
	return s.finish(result, err, func(w io.Writer) error { return s.smokeText(w, result) })
}
