package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap"
	"github.com/gpuctl/gpuctl/internal/ui"
)

// smokeText is one row per rung of the ladder and node.
func (s *session) smokeText(out io.Writer, r bootstrap.SmokeResult) error {
	w := &writer{w: out}
	rows := [][]string{{"NODE", "TEST", "RESULT", "TIME", "DETAIL"}}
	passed := 0
	var failed []string
	for _, n := range r.Nodes {
		switch n.Status {
		case "passed":
			passed++
		case "failed":
			failed = append(failed, n.Node)
		}
		for _, step := range n.Steps {
			took := ""
			if step.Seconds > 0 {
				took = ui.Duration(time.Duration(step.Seconds * float64(time.Second)))
			}
			rows = append(rows, []string{n.Node, step.Name, step.Status, took, step.Detail})
		}
		rows = append(rows, []string{n.Node, "all", n.Status, "", fmt.Sprintf("%s tested", plural(n.GPUs, "GPU"))})
	}
	w.do(ui.Table(w, rows))
	for _, n := range r.Nodes {
		if n.Code != "" {
			w.linef("%s: known failure: %s", n.Node, nextExplain(n.Code))
		}
	}
	w.linef("\n%s: %d of %s passed in %s", r.Cluster, passed, plural(len(r.Nodes), "node"), ui.Duration(time.Duration(r.Seconds*float64(time.Second))))
	if s.record != nil {
		w.linef("record: %s", s.record.Path())
	}
	if len(failed) > 0 {
		names := strings.Join(failed, ",")
		w.linef("\nNext:\n  %s\n  %s", s.command("doctor --nodes "+names), s.command("smoke --nodes "+names))
	}
	return w.err
}
