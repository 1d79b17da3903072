package main

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/gpuctl/gpuctl/bootstrap"
	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/image"
)

// checkOptions are the flags of check.
type checkOptions struct {
	noPairs bool
	ignore  []string
	junit   string
	images  []string
	rootCA  string
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

With --image it also reads what an image asks of driver and card from its
registry, and says for each machine whether it runs there. Logins are those of
docker on this computer; a mirror (sources.images) is asked first.

Exit code 3: findings block. Exit code 4: a machine was not reached.`,
		Example: "  gpuctl check\n  gpuctl check --nodes gpu-1 -o json\n  gpuctl check --ignore memory-small --junit check.xml\n  gpuctl check --image nvcr.io/nvidia/pytorch:25.09-py3",
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
	cmd.Flags().StringArrayVar(&o.images, "image", nil, "say whether this `image` runs on each machine (may be given again)")
	cmd.Flags().StringVar(&o.rootCA, "registry-ca", "", "a `file` of certificates (PEM) to trust when images are read")
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
	for _, ref := range o.images {
		if err := image.Check(ref); err != nil {
			return out, usagef("--image: %v", err)
		}
	}
	out.Images = o.images
	if o.rootCA != "" {
		data, err := os.ReadFile(o.rootCA)
		if err != nil {
			return out, usagef("--registry-ca: %v", err)
		}
		out.RegistryCA = data
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
