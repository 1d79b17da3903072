package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"
)

func newCheck(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Look at the machines and say what would stop or hurt; changes nothing",
		Long: `check connects to every machine, looks at its system, network, GPUs and driver,
and prints what it found with cause and fix. Nothing is changed.

Exit code 3: findings block. Exit code 4: a machine was not reached.`,
		Example: "  gpuctl check\n  gpuctl check --nodes gpu-1 -o json",
		Args:    wants(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withSession(cmd.Context(), need{verb: "check", record: true, retryFor: briefly}, runCheck)
		},
	}
}

func runCheck(ctx context.Context, s *session) error {
	result, err := s.engine.Check(ctx)
	if err != nil && len(result.Machines) == 0 {
		return err
	}
	err = blocked(err, result.Findings)
	return s.finish(result, err, func(w io.Writer) error { return s.checkText(w, result) })
}
