package main

import (
	"io"
	"slices"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap"
	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/ui"
)

// doctorText is what does not answer, the nodes, the findings, and what to send
// to the provider where GPUs are broken.
func (s *session) doctorText(out io.Writer, r bootstrap.DoctorResult, o doctorOptions) error {
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
	reasons(w, r)
	for _, node := range r.Cordoned {
		w.linef("%s is cordoned; annotation %s says why. Undo: %s", node, bootstrap.FaultAnnotation, s.command("node uncordon "+node))
	}
	if len(r.Reports) > 0 {
		w.gap()
	}
	forProvider(w, r.Reports)
	if o.report != "" && len(r.Reports) > 0 {
		w.linef("\nreport: %s", o.report)
	}
	if o.bundle != "" {
		w.linef("\nsupport bundle: %s (look into it before you send it)", o.bundle)
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

// reasons are the pods that wait for GPUs, or have lost them.
func reasons(w *writer, r bootstrap.DoctorResult) {
	if len(r.Pods) == 0 {
		return
	}
	w.gap()
	for _, p := range r.Pods {
		w.linef("pod %s: %s (%s)", ui.Clean(p.Pod), ui.Clean(p.Why), p.Code)
	}
}

// forProvider is a text to be sent to whoever rents the machines out.
func forProvider(w *writer, reports []bootstrap.FaultReport) {
	if len(reports) == 0 {
		return
	}
	w.linef("For the provider:")
	for _, r := range reports {
		w.linef("  machine %s (%s), %s, kernel %s, driver %s", r.Machine, r.Host, dash(ui.Clean(r.OS)), dash(ui.Clean(r.Kernel)), dash(ui.Clean(r.Driver)))
		if r.Product != "" {
			w.linef("    %s", ui.Clean(r.Product))
		}
		if booted := r.Booted; !booted.IsZero() {
			w.linef("    booted %s, looked at %s", booted.Format(time.RFC3339), r.Seen.Format(time.RFC3339))
		}
		for _, g := range r.GPUs {
			w.linef("    GPU %d  %s  %s  %s  serial %s", g.Index, ui.Clean(g.PCI), ui.Clean(g.Name), ui.Clean(g.UUID), dash(ui.Clean(g.Serial)))
		}
		for _, f := range r.Faults {
			title := string(f.Code)
			if p, ok := diag.Lookup(f.Code); ok {
				title = p.Title
			}
			w.linef("    %s: %s", title, ui.Clean(f.Evidence))
		}
		for _, line := range r.Log {
			w.linef("      %s", ui.Clean(line))
		}
	}
}
