package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuctl/gpuctl/bootstrap"
	"github.com/gpuctl/gpuctl/internal/config"
	"github.com/gpuctl/gpuctl/internal/inventory"
	"github.com/gpuctl/gpuctl/internal/state"
)

func newSSH(a *app) *cobra.Command {
	return &cobra.Command{
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
}

func runSSH(ctx context.Context, s *session, name string, command []string) error {
	m, ok := s.inventory.Find(name)
	if !ok {
		return usagef("there is no machine %q in %s", name, s.flags.file)
	}
	code, err := 0, error(nil)
	if ssh, found := exec.LookPath("ssh"); found == nil {
		code, err = runSystemSSH(ctx, s, ssh, sshArgs(s.state, s.config.Spec.SSH.HostKeys, m, command))
	} else {
		code, err = s.engine.SSH(ctx, name, command, bootstrap.Stdio{In: s.in, Out: s.out, Err: s.err, Terminal: s.terminal.in && len(command) == 0})
	}
	if err == nil && code != 0 {
		err = &remoteExit{code}
	}
	return err
}

// runSystemSSH hands the streams to OpenSSH, which knows terminals better.
func runSystemSSH(ctx context.Context, s *session, ssh string, args []string) (int, error) {
	cmd := exec.CommandContext(ctx, ssh, args...)
	cmd.Env = withoutSecret(os.Environ(), s.config.Spec.SSH.SudoPassword)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.in, s.out, s.err
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() >= 0 {
		return exit.ExitCode(), nil
	}
	if err != nil {
		return 0, fmt.Errorf("running ssh: %w", err)
	}
	return 0, nil
}

// withoutSecret drops the variable that holds the sudo password: ssh_config may
// start other programs (ProxyCommand), and those inherit the environment.
func withoutSecret(environ []string, ref *config.Secret) []string {
	if ref == nil || ref.Env == "" {
		return environ
	}
	return slices.DeleteFunc(environ, func(v string) bool { return strings.HasPrefix(v, ref.Env+"=") })
}

// sshArgs are OpenSSH's arguments for a machine: what gpuctl.yaml says on top of
// ssh_config, and the host keys this cluster pinned.
func sshArgs(d state.Dir, hostKeys string, m inventory.Machine, command []string) []string {
	strict := "accept-new"
	if hostKeys == "strict" {
		strict = "yes"
	}
	args := []string{
		"-o", "UserKnownHostsFile=" + strconv.Quote(d.KnownHosts()) + " ~/.ssh/known_hosts",
		"-o", "StrictHostKeyChecking=" + strict,
	}
	if m.User != "" {
		args = append(args, "-l", m.User)
	}
	if m.Port != 0 {
		args = append(args, "-p", strconv.Itoa(m.Port))
	}
	if m.IdentityFile != "" {
		args = append(args, "-i", m.IdentityFile)
	}
	if m.Jump != "" {
		args = append(args, "-J", m.Jump)
	}
	return append(append(args, "--", m.Host), command...)
}
