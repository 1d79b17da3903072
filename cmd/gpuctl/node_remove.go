package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuctl/gpuctl/bootstrap"
	"github.com/gpuctl/gpuctl/internal/config"
)

func newNodeRemove(a *app) *cobra.Command {
	var d drainFlags
	var gone bool
	cmd := &cobra.Command{
		Use:   "remove NAME...",
		Short: "Take nodes out of the cluster, off their machines and out of gpuctl.yaml",
		Long: `remove drains nodes, deletes them with the passwords of their machines, takes k3s
off the machines and the machines out of gpuctl.yaml. It shows what it will do and
asks. The driver and the Container Toolkit stay on the machine.

A machine that is not reached stays, and so does its node: it may only be rebooting.
With --gone you say that it is gone for good. A node that is Ready is never gone.

Exit code 3: pods stand in the way. Exit code 4: a machine was not reached.`,
		Example: "  gpuctl node remove gpu-3\n  gpuctl node remove gpu-3 --gone --yes\n  gpuctl node remove gpu-3 gpu-4 --force --drain-timeout 15m",
		Args:    wants(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			names, err := a.nodeNames(args)
			if err != nil {
				return err
			}
			o, err := d.options()
			if err != nil {
				return err
			}
			return a.withSession(cmd.Context(), need{verb: "node remove", lock: true, record: true, retryFor: briefly},
				func(ctx context.Context, s *session) error {
					result, err := s.engine.RemoveNodes(ctx, bootstrap.RemoveOptions{Nodes: names, Gone: gone, Drain: o, Confirm: s.confirm()})
					return s.nodesRemoved(result, err)
				})
		},
	}
	cmd.Flags().BoolVar(&gone, "gone", false, "machines that are not reached are gone for good: delete their nodes without them")
	d.add(cmd)
	return cmd
}

func newNodeReap(a *app) *cobra.Command {
	var after time.Duration
	cmd := &cobra.Command{
		Use:   "reap --after TIME",
		Short: "Remove nodes that have been gone for some time",
		Long: `reap removes agents that have not been Ready for at least the time given (by the
cluster's clock) and whose machines do not answer: from the cluster and from
gpuctl.yaml. It shows them and asks. Servers, nodes that are Ready and machines that
can be reached stay.`,
		Example: "  gpuctl node reap --after 10m\n  gpuctl node reap --after 1h --yes -o json",
		Args:    wants(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(a.flags.nodes) > 0 {
				return usagef("node reap finds the nodes itself; --nodes has no place here")
			}
			if after < time.Minute {
				return usagef("--after %s: say at least 1m; a node that reboots is not gone", after)
			}
			return a.withSession(cmd.Context(), need{verb: "node reap", lock: true, record: true, retryFor: briefly},
				func(ctx context.Context, s *session) error {
					result, err := s.engine.ReapNodes(ctx, bootstrap.ReapOptions{After: after, Confirm: s.confirm()})
					return s.nodesRemoved(result, err)
				})
		},
	}
	cmd.Flags().DurationVar(&after, "after", 0, "how long a node must be gone, such as 10m")
	return cmd
}

// nodesRemoved takes the machines of removed nodes out of the file and shows the result.
func (s *session) nodesRemoved(r bootstrap.RemoveResult, err error) error {
	if r.Cluster == "" {
		return err // it came to nothing before there was a plan
	}
	var note string
	if len(r.Removed) > 0 {
		note = fmt.Sprintf("removed %s", strings.Join(r.Removed, ", "))
		changed, failed := config.Rewrite(s.flags.file, func(data []byte) ([]byte, error) {
			return config.RemoveMachines(data, s.flags.file, r.Removed...)
		})
		switch {
		case errors.Is(failed, config.ErrMachinesElsewhere):
			note += "; take them out of Terraform too, or the next apply brings them back"
		case failed != nil:
			err = errors.Join(err, fmt.Errorf("taking %s out of %s: %w", strings.Join(r.Removed, ", "), s.flags.file, failed))
		case changed:
			note += ", also from " + s.flags.file
		}
	}
	return s.finish(r, err, func(out io.Writer) error {
		w := &writer{w: out}
		w.do(s.nodesText(w, r.ApplyResult))
		if note != "" {
			w.linef("%s", note)
		}
		return w.err
	})
}
