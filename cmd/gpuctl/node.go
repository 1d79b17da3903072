package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuctl/gpuctl/bootstrap"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/bootstrap/sshconn"
	"github.com/gpuctl/gpuctl/internal/kube"
)

// nodeEngine is what the node commands ask of package bootstrap.
type nodeEngine interface {
	// ListNodes compares the file with the cluster.
	ListNodes(context.Context) (bootstrap.NodeListResult, error)
	// CordonNodes keeps new pods away from nodes, or lets them come again.
	CordonNodes(ctx context.Context, names []string, on bool) (bootstrap.ApplyResult, error)
	// DrainNodes cordons and empties nodes.
	DrainNodes(context.Context, bootstrap.DrainOptions) (bootstrap.ApplyResult, error)
	// RemoveNodes takes nodes out of the cluster and k3s off their machines.
	RemoveNodes(context.Context, bootstrap.RemoveOptions) (bootstrap.RemoveResult, error)
	// ReapNodes removes nodes that are gone for some time.
	ReapNodes(context.Context, bootstrap.ReapOptions) (bootstrap.RemoveResult, error)
	// ReplaceNode makes a machine that came back the node of its name again.
	ReplaceNode(context.Context, bootstrap.ReplaceOptions) (bootstrap.ApplyResult, error)
	// Reach connects to a machine and says why that is not possible.
	Reach(ctx context.Context, machine string) error
}

func newNode(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "node",
		Short: "Add, remove, replace, drain and list nodes",
		Long: `node changes one machine of the cluster at a time, or several, while the others
work. A machine that is not reached is never removed unless you say that it is gone.`,
		Example: "  gpuctl node list\n  gpuctl node add ubuntu@203.0.113.12\n  gpuctl node remove gpu-3",
		Args:    knownCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newNodeList(a), newNodeAdd(a), newNodeRemove(a), newNodeReplace(a),
		newNodeDrain(a), newNodeCordon(a, true), newNodeCordon(a, false), newNodeReap(a))
	return cmd
}

// nodeNames are the arguments of a node command: names, each once. --nodes would say the same again.
func (a *app) nodeNames(args []string) ([]string, error) {
	if len(a.flags.nodes) > 0 {
		return nil, usagef("node commands take the names as arguments, not by --nodes")
	}
	var names []string
	for _, n := range args {
		if n = strings.ToLower(n); !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names, nil
}

// drainFlags are the decisions that a drain may need.
type drainFlags struct {
	force, bare, local bool
	limit              time.Duration
}

func (d *drainFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&d.bare, "delete-bare", false, "delete pods without a controller: nothing starts them again")
	f.BoolVar(&d.local, "delete-local-data", false, "evict pods with emptyDir volumes: their data is lost")
	f.BoolVar(&d.force, "force", false, "both of these; disruption budgets are kept all the same")
	f.DurationVar(&d.limit, "drain-timeout", 5*time.Minute, "give up draining after this `time`; the node stays cordoned")
}

func (d *drainFlags) options() (kube.DrainOptions, error) {
	if d.limit <= 0 {
		return kube.DrainOptions{}, usagef("--drain-timeout %s is not a time to wait", d.limit)
	}
	return kube.DrainOptions{DeleteBare: d.bare || d.force, DeleteLocalData: d.local || d.force, Limit: d.limit}, nil
}

// nodeHints are steps that help with nodes.
func nodeHints(err error) []string {
	var rejected *bootstrap.RejectedError
	var changed *sshconn.KeyChangedError
	var stays *bootstrap.StaysError
	var drain *kube.DrainError
	var connect *remote.ConnectError
	switch {
	case errors.As(err, &rejected) && rejected.Leftover:
		return []string{"if the machine was rebuilt: gpuctl node replace " + rejected.Node}
	case errors.As(err, &changed) && !errors.Is(err, plan.ErrConsent):
		steps := []string{"if an agent was rebuilt: gpuctl node replace NAME shows both keys and asks"}
		if errors.As(err, &connect) && connect.Hint != "" {
			steps = append(steps, connect.Hint)
		}
		return steps
	case errors.As(err, &stays) && stays.Err != nil:
		return []string{"look whether it comes back: gpuctl node list", "if it is gone for good: gpuctl node remove " + stays.Node + " --gone"}
	case errors.As(err, &drain):
		return []string{"decide about each pod, then run the same command again", "to let pods come again: gpuctl node uncordon " + drain.Node}
	}
	return nil
}
