package main

import (
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/gpuctl/gpuctl/bootstrap"
	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/ui"
)

// doctorText is what does not answer, the nodes, the findings, and what to send
// to the provider where GPUs are broken.
func (s *session) doctorText(out io.Writer, r bootstrap.DoctorResult, bundle string) error {
	w := &writer{w: out}
	for _, h := range r.Halves {
		for _, why := range h.Why {
			w.linef("%s is %s: %s", map[string]string{"ssh": "SSH", "api": "the API"}[h.Name], h.State, ui.Clean(why))
		}
	}
	if len(r.Nodes) > 0 {
		w.gap()
		w.do(nodeTable(w, r.Nodes))
	}
	if len(r.Findings) > 0 {
		w.gap()
		w.do(ui.Findings(w, s.style(s.terminal.out), r.Findings, s.flags.verbose))
	}
	if n := len(r.Consequences); n > 0 {
		w.linef("These explain %s more, to be seen with -o json.", plural(n, "finding"))
	}
	for _, node := range r.Cordoned {
		w.linef("%s is cordoned; annotation %s says why. Undo: %s", node, bootstrap.FaultAnnotation, s.command("node uncordon "+node))
	}
	forProvider(w, r)
	if bundle != "" {
		w.linef("\nsupport bundle: %s (look into it before you send it)", bundle)
	}
	if !slices.ContainsFunc(r.Findings, func(f diag.Finding) bool { return f.Severity != diag.Informs }) && !anySilent(r) {
		w.gap()
		w.linef("%s: %s, %s: nothing is wrong.", r.Cluster, plural(len(r.Machines), "machine"), plural(len(r.Nodes), "node"))
	}
	return w.err
}

func anySilent(r bootstrap.DoctorResult) bool {
	return slices.ContainsFunc(r.Halves, func(h bootstrap.Half) bool { return len(h.Why) > 0 })
}

// forProvider is a text to be sent to whoever rents the machines out.
func forProvider(w *writer, r bootstrap.DoctorResult) {
	faults := r.Faults()
	if len(faults) == 0 {
		return
	}
	w.gap()
	w.linef("For the provider:")
	for _, name := range slices.Sorted(maps.Keys(faults)) {
		for _, m := range r.Machines {
			if m.Name != name {
				continue
			}
			w.linef("  machine %s (%s), %s, kernel %s, driver %s", m.Name, m.Host, dash(m.OS), dash(m.Kernel), dash(m.Driver))
			for _, g := range m.GPUs {
				w.linef("    GPU %s  %s  %s", strconv.Itoa(g.Index), ui.Clean(g.Model), ui.Clean(g.UUID))
			}
		}
		for _, f := range faults[name] {
			title := string(f.Code)
			if p, ok := diag.Lookup(f.Code); ok {
				title = p.Title
			}
			w.linef("    %s: %s", title, ui.Clean(f.Evidence))
		}
	}
}
