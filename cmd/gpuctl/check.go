package main

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/gpuctl/gpuctl/bootstrap"
	"github.com/gpuctl/gpuctl/internal/diag"
)

// checkOptions are the flags of check.
type checkOptions struct {
	noPairs bool
	ignore  []string
	junit   string
}

func newCheck(a *app) *cobra.Command {
	var o checkOptions
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Look at the machines and say what would stop or hurt; changes nothing",
		Long: `check connects to every machine, looks at its system, network, GPUs and driver,
lets the machines try the ports between each other, and prints what it found with
cause and fix. Nothing is changed; what tries the ports runs for seconds and
leaves nothing behind.

Exit code 3: findings block. Exit code 4: a machine was not reached.`,
		Example: "  gpuctl check\n  gpuctl check --nodes gpu-1 -o json\n  gpuctl check --ignore memory-small --junit check.xml",
		Args:    wants(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			options, err := o.engine()
			if err != nil {
				return err
			}
			return a.withSession(cmd.Context(), need{verb: "check", record: true, retryFor: briefly},
				func(ctx context.Context, s *session) error { return runCheck(ctx, s, o, options) })
		},
	}
	cmd.Flags().BoolVar(&o.noPairs, "no-pairs", false, "do not try the ports between the machines")
	cmd.Flags().StringSliceVar(&o.ignore, "ignore", nil, "`codes` of findings that shall inform and not stop")
	cmd.Flags().StringVar(&o.junit, "junit", "", "also write the findings as JUnit XML to this `file`")
	return cmd
}

// engine refuses codes that the catalogue does not have.
func (o checkOptions) engine() (bootstrap.CheckOptions, error) {
	out := bootstrap.CheckOptions{NoPairs: o.noPairs}
	for _, code := range o.ignore {
		p, ok := diag.Lookup(diag.Code(code))
		if !ok {
			return out, usagef("--ignore: there is no finding %q; gpuctl explain --list shows all", code)
		}
		out.Ignore = append(out.Ignore, p.Code)
	}
	return out, nil
}

func runCheck(ctx context.Context, s *session, o checkOptions, options bootstrap.CheckOptions) error {
	result, err := s.engine.Check(ctx, options)
	if err != nil && result.Cluster == "" {
		return err
	}
	err = blocked(err, result.Findings)
	if o.junit != "" {
		data, failed := checkJUnit(result)
		if failed == nil {
			failed = os.WriteFile(o.junit, data, 0o644)
		}
		if failed != nil {
			return failed
		}
	}
	return s.finish(result, err, func(w io.Writer) error { return s.checkText(w, result) })
}
