package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/ui"
)

func newExplain(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "explain [code]",
		Short:   "Explain a finding: symptom, cause and fix; without a code, list all",
		Example: "  gpuctl explain\n  gpuctl explain fabric-manager-down",
		Args:    wants(cobra.MaximumNArgs(1)),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return codes(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return explainAll(a)
			}
			return explainOne(a, args[0])
		},
	}
}

func codes() []string {
	var out []string
	for _, p := range diag.Catalogue() {
		out = append(out, string(p.Code))
	}
	return out
}

func explainAll(a *app) error {
	all := diag.Catalogue()
	return a.show(all, func(w io.Writer) error {
		rows := [][]string{{"CODE", "AREA", "SEVERITY", "TITLE"}}
		for _, p := range all {
			rows = append(rows, []string{string(p.Code), p.Area, string(p.Severity), p.Title})
		}
		return ui.Table(w, rows)
	})
}

func explainOne(a *app, code string) error {
	p, ok := diag.Lookup(diag.Code(code))
	if !ok {
		return usagef("there is no entry %q; gpuctl explain lists all", code)
	}
	return a.show(p, func(out io.Writer) error {
		w := &writer{w: out}
		w.linef("%s: %s (%s)", p.Code, p.Title, p.Severity)
		for _, part := range [][2]string{
			{"symptom", p.Symptom}, {"cause", p.Cause}, {"fix", strings.Join(p.Fix, "\n")}, {"see", p.Reference},
		} {
			if part[1] != "" {
				w.linef("\n%s\n  %s", part[0], strings.ReplaceAll(strings.TrimSpace(part[1]), "\n", "\n  "))
			}
		}
		if p.Unverified {
			w.linef("\nThis entry was not checked against a source.")
		}
		return w.err
	})
}

// nextExplain is the line that leads from a finding to its entry.
func nextExplain(code string) string { return fmt.Sprintf("gpuctl explain %s", code) }
