package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap"
	"github.com/gpuctl/gpuctl/internal/ui"
)

// statusText is one row per node and what a pod needs to get a GPU.
func (s *session) statusText(out io.Writer, r bootstrap.StatusResult) error {
	w := &writer{w: out}
	w.do(nodeTable(w, r.Nodes))
	w.linef("\nGPU Operator: %s", ui.Clean(r.Operator))
	for _, m := range r.Missing {
		w.linef("%s is in gpuctl.yaml and no node yet: %s", m, s.command("apply"))
	}
	for _, n := range r.Nodes {
		if !n.Ready && n.Why != "" {
			w.linef("%s is not ready: %s", n.Name, ui.Clean(n.Why))
		}
		if n.Unlisted {
			w.linef("%s is a node and not in gpuctl.yaml", n.Name)
		}
		if n.Ready && n.Allocatable > 0 && n.InUse == 0 {
			w.linef("%s is idle: no pod has asked for its GPUs; since when: %s", n.Name, s.command("cost"))
		}
	}
	w.do(ui.Findings(w, s.style(s.terminal.out), r.Findings, s.flags.verbose))
	if len(r.PodLines) > 0 {
		w.linef("\nA pod gets a GPU with (%s):\n  %s", r.RuntimePath, strings.Join(r.PodLines, "\n  "))
	}
	return w.err
}

func nodeTable(out io.Writer, nodes []bootstrap.NodeView) error {
	rows := [][]string{{"NODE", "ROLE", "READY", "VERSION", "ADDRESS", "GPUS", "IN USE", "MODEL", "PROVEN"}}
	for _, n := range nodes {
		rows = append(rows, []string{n.Name, n.Role, yes(n.Ready), dash(n.Version), dash(n.Address),
			fmt.Sprintf("%d/%d", n.Allocatable, n.GPUs), fmt.Sprint(n.InUse), dash(n.Model), provenText(n)})
	}
	return ui.Table(out, rows)
}

func provenText(n bootstrap.NodeView) string {
	switch {
	case n.GPUs == 0 && n.Allocatable == 0:
		return "-"
	case !n.Proven:
		return "no"
	case n.ProvenAt == nil:
		return "yes"
	}
	return n.ProvenAt.UTC().Format(time.RFC3339)
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
