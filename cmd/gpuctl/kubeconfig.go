package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

func newKubeconfig(a *app) *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print the administrator's kubeconfig",
		Long: `kubeconfig fetches the cluster's kubeconfig over SSH and prints it, or writes it to
a file of mode 0600. It holds the keys of the cluster.`,
		Example: "  gpuctl kubeconfig --to kubeconfig\n  KUBECONFIG=kubeconfig kubectl get nodes",
		Args:    wants(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withSession(cmd.Context(), need{verb: "kubeconfig", retryFor: briefly},
				func(ctx context.Context, s *session) error { return runKubeconfig(ctx, s, to) })
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "write it to this `file` instead")
	return cmd
}

func runKubeconfig(ctx context.Context, s *session, to string) error {
	data, err := s.engine.Kubeconfig(ctx)
	if err != nil {
		return err
	}
	if err := s.state.WriteKubeconfig(data); err != nil {
		return err
	}
	if to == "" {
		return s.show(map[string]string{"kubeconfig": string(data)}, func(w io.Writer) error {
			_, err := w.Write(data)
			return err
		})
	}
	if err := os.WriteFile(to, data, 0o600); err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	return s.show(map[string]string{"path": to}, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "wrote %s; use it with: export KUBECONFIG=%s\n", to, to)
		return err
	})
}
