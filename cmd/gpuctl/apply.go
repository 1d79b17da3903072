package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/gpuctl/gpuctl/bootstrap"
)

// applyOptions are the flags of apply and bootstrap.
type applyOptions struct {
	skipSmoke bool
	noPairs   bool
}

func newApply(a *app) *cobra.Command {
	var o applyOptions
	cmd := &cobra.Command{
		Use:   "apply",
		Short: "Make the cluster what gpuctl.yaml says, and prove its GPUs",
		Long: `apply looks at the machines and the cluster, does what is pending, looks again
until nothing is, and proves the GPUs of every node that has not been proven yet.
It can be run again at any time: what is right already stays as it is.

Reboots, driver changes, drains and uninstalls are shown and asked for first.

On a cluster that gpuctl did not make (kubernetes.existing) it does the GPU half:
an operator that is there is kept with its values and changed only as asked.`,
		Example: "  gpuctl apply\n  gpuctl apply --yes --timeout 45m",
		Args:    wants(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withSession(cmd.Context(), need{verb: "apply", lock: true, record: true, retryFor: patience},
				func(ctx context.Context, s *session) error { return runApply(ctx, s, o) })
		},
	}
	o.addFlags(cmd)
	addBundle(cmd, a)
	addForce(cmd, a)
	return cmd
}

func addBundle(cmd *cobra.Command, a *app) {
	cmd.Flags().StringVar(&a.flags.bundle, "bundle", "", "take everything from this offline bundle, a `file` of gpuctl bundle create")
}

func addForce(cmd *cobra.Command, a *app) {
	cmd.Flags().BoolVar(&a.flags.force, "force", false, "let versions meet that no tested set has together")
}

func (o *applyOptions) addFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.skipSmoke, "skip-smoke", false, "leave new nodes unproven, closed to work")
	cmd.Flags().BoolVar(&o.noPairs, "no-pairs", false, "join machines without probing the ways between them first")
}

func runApply(ctx context.Context, s *session, o applyOptions) error {
	result, err := s.engine.Apply(ctx, bootstrap.ApplyOptions{Confirm: s.confirm(), SkipSmoke: o.skipSmoke, NoPairs: o.noPairs})
	if err != nil && result.Cluster == "" {
		return err
	}
	return s.finish(result, err, func(w io.Writer) error { return s.applyText(w, result, err) })
}
