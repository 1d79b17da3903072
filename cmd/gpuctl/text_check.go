package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/gpuctl/gpuctl/bootstrap"
	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/ui"
)

// checkText is one row per machine and the findings below.
func (s *session) checkText(out io.Writer, r bootstrap.CheckResult) error {
	w := &writer{w: out}
	w.do(machineTable(w, r.Machines))
	unreached(w, r.Machines)
	imageTable(w, r.Images)
	s.findingsText(w, r)
	if w.err == nil {
		s.checkEnd(w, r)
	}
	return w.err
}

// checkEnd says what follows. Only where every machine was seen whole can
// nothing speak against it.
func (s *session) checkEnd(w *writer, r bootstrap.CheckResult) {
	var missing []string
	for _, m := range r.Machines {
		if m.State == bootstrap.Unreachable {
			missing = append(missing, m.Name)
		}
	}
	speaks, unknown := false, []diag.Finding{}
	for _, f := range r.Findings {
		speaks = speaks || f.Severity != diag.Informs
		if slices.Contains([]diag.Code{"probe-incomplete", "pairs-not-probed", "image-not-judged"}, f.Code) {
			unknown = append(unknown, f)
		}
	}
	switch {
	case len(missing) > 0:
		w.linef("\nOf %s nothing is known. Next: mend the way there, then %s", strings.Join(missing, ", "), s.command("check"))
	case speaks:
	case len(unknown) > 0:
		w.linef("\nWhat was seen speaks for it; not known is:")
		for _, f := range unknown {
			w.linef("  %s: %s (%s)", nameOf(f.Machine), ui.Clean(f.Evidence), f.Code)
		}
		w.linef("Next: %s", s.command("plan"))
	default:
		w.linef("\nNothing speaks against it. Next: %s", s.command("plan"))
	}
}

func imageTable(w *writer, images []bootstrap.ImageView) {
	if len(images) == 0 {
		return
	}
	rows := [][]string{{"IMAGE", "MACHINE", "ANSWER", "WHY"}}
	for _, v := range images {
		rows = append(rows, []string{ui.Clean(v.Image), v.Machine, string(v.Answer), ui.Clean(v.Reason)})
	}
	w.gap()
	w.do(ui.Table(w, rows))
}

func machineTable(out io.Writer, machines []bootstrap.MachineView) error {
	rows := [][]string{{"MACHINE", "ROLE", "STATE", "SYSTEM", "CPUS", "MEMORY", "FREE DISK", "DRIVER", "GPUS", "K3S"}}
	for _, m := range machines {
		row := []string{m.Name, m.Role, string(m.State)}
		if m.State == bootstrap.Unreachable {
			rows = append(rows, row)
			continue
		}
		rows = append(rows, append(row, dash(m.OS), strconv.Itoa(m.CPUs), gib(m.MemoryMiB), gib(m.DiskFreeMiB),
			dash(m.Driver), gpus(m.GPUs), dash(m.K3s)))
	}
	return ui.Table(out, rows)
}

func unreached(w *writer, machines []bootstrap.MachineView) {
	for _, m := range machines {
		if m.State == bootstrap.Unreachable {
			w.linef("%s was not reached: %s", m.Name, ui.Clean(m.Error))
		}
	}
}

func (s *session) findingsText(w *writer, r bootstrap.CheckResult) {
	if len(r.Findings) == 0 {
		return
	}
	w.gap()
	w.do(ui.Findings(w, s.style(s.terminal.out), r.Findings, s.flags.verbose))
}

// gpus is "8 x NVIDIA H100 80GB HBM3", models in the order of their first GPU.
func gpus(all []bootstrap.GPUView) string {
	var models []string
	count := map[string]int{}
	for _, g := range all {
		if count[g.Model] == 0 {
			models = append(models, g.Model)
		}
		count[g.Model]++
	}
	text := ""
	for i, m := range models {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%d x %s", count[m], m)
	}
	return dash(text)
}

func gib(mib int64) string {
	if mib == 0 {
		return "-"
	}
	return fmt.Sprintf("%d GiB", (mib+512)/1024)
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// plural is "1 action", "2 actions".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
