package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/gpuctl/gpuctl/bootstrap"
)

func newCertificate(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "certificate",
		Short:   "Rotate the cluster's certificates",
		Example: "  gpuctl certificate rotate",
		Args:    knownCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "rotate",
		Short: "Make the certificates of every machine new",
		Long: `rotate makes the certificates and keys of k3s new on every machine, servers one
after the other, then agents. k3s starts again on each; pods run on. The CAs stay,
so that kubeconfigs and tokens stay valid. k3s does the same by itself when it
starts within 120 days of their end.`,
		Example: "  gpuctl certificate rotate\n  gpuctl certificate rotate --yes -o json",
		Args:    wants(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withSession(cmd.Context(), need{verb: "certificate rotate", lock: true, record: true, retryFor: briefly},
				func(ctx context.Context, s *session) error {
					result, err := s.engine.RotateCertificates(ctx, bootstrap.RotateOptions{Confirm: s.confirm()})
					return s.nodesDone(result, result, err)
				})
		},
	})
	return cmd
}

func newToken(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "token",
		Short:   "Rotate the tokens by which machines join",
		Example: "  gpuctl token rotate",
		Args:    knownCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var o bootstrap.RotateOptions
	rotate := &cobra.Command{
		Use:   "rotate",
		Short: "Make the server token and the agent token new",
		Long: `rotate makes the tokens new and gives them to every machine: servers one after the
other, then agents. k3s starts again on each; pods run on. Without --server and
--agent both are made new. The tokens are never shown.

Snapshots of etcd from before open with the server token of before alone: take a
new one afterwards. A run that was cut off is mended by the same command.`,
		Example: "  gpuctl token rotate\n  gpuctl token rotate --agent --yes",
		Args:    wants(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !o.ServerToken && !o.AgentToken {
				o.ServerToken, o.AgentToken = true, true
			}
			return a.withSession(cmd.Context(), need{verb: "token rotate", lock: true, record: true, retryFor: briefly},
				func(ctx context.Context, s *session) error {
					o.Confirm = s.confirm()
					result, err := s.engine.RotateTokens(ctx, o)
					return s.nodesDone(result, result, err)
				})
		},
	}
	rotate.Flags().BoolVar(&o.ServerToken, "server", false, "the server token, by which servers join and snapshots open")
	rotate.Flags().BoolVar(&o.AgentToken, "agent", false, "the agent token")
	cmd.AddCommand(rotate)
	return cmd
}
