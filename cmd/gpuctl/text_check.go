package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/gpuctl/gpuctl/bootstrap"
	"github.com/gpuctl/gpuctl/internal/ui"
)

// checkText is one row per machine and the findings below.
func (s *session) checkText(out io.Writer, r bootstrap.CheckResult) error {
	w := &writer{w: out}
	w.do(machineTable(w, r.Machines))
	unreached(w, r.Machines)
	s.findingsText(w, r)
	if w.err == nil && len(r.Findings) == 0 {
		w.linef("\nNothing speaks against it. Next: %s", s.command("plan"))
	}
	return w.err
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
