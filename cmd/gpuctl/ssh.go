package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/gpuctl/gpuctl/bootstrap"
)

func newSSH(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ssh NAME [-- command...]",
		Short: "Open a shell on a machine, or run a command there",
		Long: `ssh connects to a machine of gpuctl.yaml the way gpuctl does: same user, key, jump
hosts and pinned host keys. The exit code is that of the command.`,
		Example: "  gpuctl ssh gpu-1\n  gpuctl ssh gpu-1 -- nvidia-smi -L",
		Args:    wants(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withSession(cmd.Context(), need{verb: "ssh", retryFor: briefly},
				func(ctx context.Context, s *session) error { return runSSH(ctx, s, args[0], args[1:]) })
		},
	}
	cmd.AddCommand(newSSHCheck(a))
	return cmd
}

func runSSH(ctx context.Context, s *session, name string, command []string) error {
	if _, ok := s.inventory.Find(name); !ok {
		return usagef("there is no machine %q in %s", name, s.flags.file)
	}
	// ssh_config may start other programs (ProxyCommand), and those inherit the environment.
	for _, name := range s.config.SecretEnv() {
		if err := os.Unsetenv(name); err != nil {
			return err
		}
	}
	code, err := s.engine.SSH(ctx, name, command, bootstrap.Stdio{
		In: s.in, Out: s.out, Err: s.err, Terminal: s.terminal.in && s.terminal.out && len(command) == 0,
	})
	if err == nil && code != 0 {
		err = &remoteExit{code}
	}
	return err
}
