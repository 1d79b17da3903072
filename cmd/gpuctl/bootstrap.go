package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gpuctl/gpuctl/internal/config"
)

// bootstrapOptions are the flags of bootstrap.
type bootstrapOptions struct {
	applyOptions
	hosts config.HostOptions
}

func newBootstrap(a *app) *cobra.Command {
	var o bootstrapOptions
	cmd := &cobra.Command{
		Use:   "bootstrap [user@]host[:port]...",
		Short: "Make a cluster of machines in one go",
		Long: `bootstrap writes gpuctl.yaml for the machines named, does what apply does and
ends with proven GPUs. The first machine is the server (control plane, it runs
work too), the others are agents. A host may be an address, a DNS name or a Host
of your ssh_config. Without machines it takes the gpuctl.yaml that is there.

A gpuctl.yaml that is there already and says something else is never overwritten.`,
		Example: `  gpuctl bootstrap ubuntu@203.0.113.10 ubuntu@203.0.113.11
  gpuctl bootstrap --jump ops@bastion.example.com gpu-a gpu-b
  gpuctl bootstrap --identity-file ~/.ssh/rented root@203.0.113.10:2222`,
		RunE: func(cmd *cobra.Command, args []string) error { return runBootstrap(cmd.Context(), a, o, args) },
	}
	f := cmd.Flags()
	f.StringVar(&o.hosts.Cluster, "name", "", "the cluster's `name` (default gpu)")
	f.StringVar(&o.hosts.Set, "set", "", "the tested `set` of versions (default the newest)")
	f.StringVar(&o.hosts.Jump, "jump", "", "`hosts` to jump through, [user@]host[:port], comma separated")
	f.StringVar(&o.hosts.IdentityFile, "identity-file", "", "private key `file`")
	f.StringVar(&o.hosts.SudoPasswordFile, "sudo-password-file", "", "`file` that holds the password for sudo")
	o.addFlags(cmd)
	addBundle(cmd, a)
	return cmd
}

func runBootstrap(ctx context.Context, a *app, o bootstrapOptions, hosts []string) error {
	if len(hosts) > 0 {
		data, err := config.FromHosts(hosts, o.hosts)
		if err != nil {
			return &usageError{err}
		}
		if err := config.WriteNew(a.flags.file, data); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(a.err, "wrote %s\n", a.flags.file); err != nil {
			return err
		}
	} else if o.hosts != (config.HostOptions{}) {
		return usagef("--name, --set, --jump, --identity-file and --sudo-password-file belong to machines on the command line")
	}
	return a.withSession(ctx, need{verb: "bootstrap", lock: true, record: true, retryFor: patience},
		func(ctx context.Context, s *session) error { return runApply(ctx, s, o.applyOptions) })
}
