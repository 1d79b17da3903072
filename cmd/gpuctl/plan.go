package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/gpuctl/gpuctl/bootstrap"
)

func newPlan(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Say what apply would do, and why; changes nothing",
		Long: `plan looks at the machines and the cluster and lists every action that is
pending, the reason and, with -v, the exact versions and files. Nothing is changed.

Exit code 3: findings block. Exit code 4: a machine was not reached.`,
		Example: "  gpuctl plan\n  gpuctl plan -v\n  gpuctl plan -o json",
		Args:    wants(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withSession(cmd.Context(), need{verb: "plan", record: true, retryFor: briefly}, runPlan)
		},
	}
	addForce(cmd, a)
	addBundle(cmd, a)
	return cmd
}

func runPlan(ctx context.Context, s *session) error {
	result, err := s.engine.Plan(ctx)
	if err != nil && (result.Cluster == "" || is[*bootstrap.APIError](err)) {
		return err
	}
	err = blocked(err, result.Findings)
	return s.finish(result, err, func(w io.Writer) error { return s.planText(w, result) })
}
