package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuctl/gpuctl/bootstrap"
	"github.com/gpuctl/gpuctl/internal/ui"
)

func newNodeList(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "Show the machines of gpuctl.yaml and the nodes of the cluster side by side",
		Long: `list compares gpuctl.yaml with the cluster: which machines have joined, which
nodes are Ready, cordoned and proven, what is missing, and what is in the cluster
without being listed. It asks the cluster's API alone, through the server.`,
		Example: "  gpuctl node list\n  gpuctl node list -o json",
		Args:    wants(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withSession(cmd.Context(), need{verb: "node list", retryFor: briefly}, runNodeList)
		},
	}
}

func runNodeList(ctx context.Context, s *session) error {
	result, err := s.engine.ListNodes(ctx)
	return s.finish(result, err, func(w io.Writer) error { return s.nodeListText(w, result) })
}

func (s *session) nodeListText(out io.Writer, r bootstrap.NodeListResult) error {
	rows := [][]string{{"NODE", "ROLE", "STATE", "CORDONED", "VERSION", "GPUS", "IN USE", "MODEL", "PROVEN", "HOST"}}
	for _, n := range r.Nodes {
		gpus, inUse := "-", "-"
		if n.Joined {
			gpus, inUse = fmt.Sprintf("%d/%d", n.Allocatable, n.GPUs), fmt.Sprint(n.InUse)
		} else if n.Promised != nil {
			gpus = fmt.Sprintf("-/%d", *n.Promised)
		}
		rows = append(rows, []string{n.Name, n.Role, string(n.State), yes(n.Cordoned), dash(n.Version), gpus, inUse,
			dash(ui.Clean(n.Model)), provenText(n.NodeView), dash(n.Host)})
	}
	w := &writer{w: out}
	w.do(ui.Table(w, rows))
	w.linef("")
	for _, n := range r.Nodes {
		s.nodeNote(w, n)
	}
	return w.err
}

// nodeNote says what a row means and what to do about it.
func (s *session) nodeNote(w *writer, n bootstrap.NodeEntry) {
	switch {
	case n.State == bootstrap.NodeMissing:
		w.linef("%s is in gpuctl.yaml and no node: %s", n.Name, s.command("apply"))
	case n.State == bootstrap.NodeUnlisted:
		w.linef("%s is a node and not in gpuctl.yaml: it stays until you say %s", n.Name, s.command("node remove "+n.Name))
	case n.State == bootstrap.NodeNotReady && n.NotReadySince != nil:
		w.linef("%s is not Ready since %s: %s", n.Name, n.NotReadySince.Format(time.RFC3339), ui.Clean(n.Why))
	}
	if n.Promised != nil && n.Joined && int64(*n.Promised) != n.Allocatable {
		w.linef("%s offers %d of %d promised GPUs", n.Name, n.Allocatable, *n.Promised)
	}
	if n.Cordoned {
		w.linef("%s takes no new pods: %s", n.Name, s.command("node uncordon "+n.Name))
	}
}
