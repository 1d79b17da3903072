package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/gpuctl/gpuctl/bootstrap"
	"github.com/gpuctl/gpuctl/internal/ui"
)

func newNodeDrain(a *app) *cobra.Command {
	var d drainFlags
	cmd := &cobra.Command{
		Use:   "drain NAME...",
		Short: "Empty nodes: cordon them and evict their pods",
		Long: `drain keeps new pods away and evicts those that are there. Disruption budgets are
kept, DaemonSets stay. Pods that would be lost for good (without a controller) and
data in emptyDir volumes are named first and nothing is touched until you decide.

Exit code 3: pods stand in the way. After a drain that failed the node stays cordoned.`,
		Example: "  gpuctl node drain gpu-3\n  gpuctl node drain gpu-3 --delete-local-data --drain-timeout 15m --yes",
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
			return a.withSession(cmd.Context(), need{verb: "node drain", lock: true, record: true, retryFor: briefly},
				func(ctx context.Context, s *session) error {
					result, err := s.engine.DrainNodes(ctx, bootstrap.DrainOptions{Nodes: names, Drain: o, Confirm: s.confirm()})
					return s.nodesDone(result, result, err)
				})
		},
	}
	d.add(cmd)
	return cmd
}

func newNodeCordon(a *app, on bool) *cobra.Command {
	verb, short, long := "cordon", "Keep new pods away from nodes", "cordon keeps new pods away from nodes; what runs there goes on."
	if !on {
		verb, short, long = "uncordon", "Let pods come to nodes again", "uncordon lets new pods come to nodes again, after a cordon or a drain."
	}
	return &cobra.Command{
		Use:     verb + " NAME...",
		Short:   short,
		Long:    long,
		Example: "  gpuctl node " + verb + " gpu-3",
		Args:    wants(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			names, err := a.nodeNames(args)
			if err != nil {
				return err
			}
			return a.withSession(cmd.Context(), need{verb: "node " + verb, lock: true, record: true, retryFor: briefly},
				func(ctx context.Context, s *session) error {
					result, err := s.engine.CordonNodes(ctx, names, on)
					return s.nodesDone(result, result, err)
				})
		},
	}
}

// nodesDone shows what became of a change to nodes: full is what JSON says of it.
func (s *session) nodesDone(full any, r bootstrap.ApplyResult, err error) error {
	if r.Cluster == "" {
		return err // it came to nothing before there was a plan
	}
	return s.finish(full, err, func(w io.Writer) error { return s.nodesText(w, r) })
}

func (s *session) nodesText(out io.Writer, r bootstrap.ApplyResult) error {
	w := &writer{w: out}
	s.findingsText(w, r.CheckResult)
	s.failures(w, r)
	for _, o := range r.Outcomes {
		if o.Status == "done" {
			w.linef("%s  %s: done", nameOf(o.Machine), ui.Clean(o.Title))
		}
	}
	if len(r.Outcomes) == 0 && len(r.Actions) == 0 && len(r.Findings) == 0 {
		w.linef("nothing to do")
	}
	if s.record != nil {
		w.linef("record: %s", s.record.Path())
	}
	return w.err
}
