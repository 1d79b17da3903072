package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/gpuctl/gpuctl/bootstrap"
)

// doctorOptions are the flags of doctor.
type doctorOptions struct {
	bootstrap.DoctorOptions
	bundle string
	report string
}

func newDoctor(a *app) *cobra.Command {
	var o doctorOptions
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what is wrong in a living cluster, and what mends it",
		Long: `doctor looks at the machines, the ways between them, k3s and its log, the GPU
Operator, nodes, pods and events, and says what is wrong: causes first, with
evidence and the commands that mend it. A pod that waits for a GPU gets its reason.
It goes on when a machine, or the API, does not answer, and says so. Where the
server is not reached by SSH it asks the API straight, with the kubeconfig that
an earlier gpuctl kubeconfig kept.

Where GPUs are broken (Xid, ECC, lost from the bus, fabric), --cordon keeps new
pods from their nodes and leaves the evidence there, and --report writes what a
provider wants to know: machine, GPUs with serial numbers, driver, kernel log.

--bundle writes what was seen for someone who is to help. Addresses, host names
and users are pseudonyms in it; secrets, environments and contents of files were
never collected.

Exit code 3: something blocks. Exit code 4: a machine was not reached.`,
		Example: "  gpuctl doctor\n  gpuctl doctor --cordon --report provider.txt\n  gpuctl doctor --bundle support.tar.gz",
		Args:    wants(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withSession(cmd.Context(), need{verb: "doctor", record: true, retryFor: briefly},
				func(ctx context.Context, s *session) error { return runDoctor(ctx, s, o) })
		},
	}
	cmd.Flags().BoolVar(&o.NoPairs, "no-pairs", false, "do not try the ports between the machines")
	cmd.Flags().BoolVar(&o.Cordon, "cordon", false, "keep new pods from nodes with broken GPUs and note the evidence there")
	cmd.Flags().StringVar(&o.report, "report", "", "write what the provider has to know of broken GPUs to this new `file`")
	cmd.Flags().StringVar(&o.bundle, "bundle", "", "write a support bundle, tar.gz, to this new `file`")
	return cmd
}

func runDoctor(ctx context.Context, s *session, o doctorOptions) error {
	result, err := s.engine.Doctor(ctx, o.DoctorOptions)
	if err != nil && result.Cluster == "" {
		return err
	}
	err = blocked(err, result.Findings)
	if o.bundle != "" {
		if failed := s.writeBundle(o.bundle, result); failed != nil {
			err = errors.Join(err, failed)
			o.bundle = ""
		}
	}
	if o.report != "" {
		if failed := writeReport(o.report, result.Reports); failed != nil {
			err = errors.Join(err, failed)
			o.report = ""
		}
	}
	return s.finish(result, err, func(w io.Writer) error { return s.doctorText(w, result, o) })
}

// writeReport writes nothing where no GPU is broken.
func writeReport(path string, reports []bootstrap.FaultReport) error {
	if len(reports) == 0 {
		return nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	w := &writer{w: f}
	forProvider(w, reports)
	return errors.Join(w.err, f.Close())
}

// writeBundle never overwrites a file: it may be the one that was sent.
func (s *session) writeBundle(path string, r bootstrap.DoctorResult) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("writing the bundle: %w", err)
	}
	return errors.Join(s.engine.Bundle(f, r), f.Close())
}
