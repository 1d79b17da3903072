package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/diag/evidence"
	"github.com/gpuctl/gpuctl/internal/ui"
)

func newExplain(a *app) *cobra.Command {
	var list bool
	cmd := &cobra.Command{
		Use:   "explain [code | error text]",
		Short: "Explain a finding or an error: symptom, cause and fix",
		Long: "Explain prints the entry of a code of the failure catalogue, and finds the likely\n" +
			"entries for an error text pasted from anywhere. Without arguments it lists all.",
		Example: "  gpuctl explain fabric-manager-down\n  gpuctl explain \"Failed to initialize NVML: Driver/library version mismatch\"\n  gpuctl explain --list -o json",
		Args:    wants(cobra.ArbitraryArgs),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return codes(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			text := strings.Join(args, " ")
			switch {
			case list && text != "":
				return usagef("--list takes no code")
			case text == "":
				return explainAll(a)
			case strings.ContainsAny(strings.TrimSpace(text), " \n"):
				return explainText(a, text)
			}
			return explainOne(a, strings.TrimSpace(text))
		},
	}
	cmd.Flags().BoolVar(&list, "list", false, "list every entry")
	return cmd
}

func codes() []string {
	var out []string
	for _, p := range diag.Catalogue() {
		out = append(out, string(p.Code))
	}
	return out
}

// listed is an entry with what the code has of it.
type listed struct {
	diag.Problem
	evidence.Of
}

func explainAll(a *app) error {
	var all []listed
	for _, p := range diag.Catalogue() {
		all = append(all, listed{p, evidence.For(string(p.Code))})
	}
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
		if found := diag.ExplainPasted(code); len(found) > 0 {
			return showEntries(a, found[:1])
		}
		if near := diag.Nearest(code); near != "" {
			return usagef("there is no entry %q; did you mean %s?", code, near)
		}
		return usagef("there is no entry %q; gpuctl explain lists all", code)
	}
	return a.show(listed{p, evidence.For(string(p.Code))}, func(out io.Writer) error {
		w := &writer{w: out}
		printEntry(w, p)
		return w.err
	})
}

// mostLikely is how many entries a pasted text is explained by.
const mostLikely = 3

func explainText(a *app, text string) error {
	found := diag.ExplainPasted(text)
	if len(found) == 0 {
		found = diag.Alike(text, mostLikely)
	}
	if len(found) == 0 {
		return usagef("nothing in the catalogue speaks of this text; gpuctl explain lists all entries")
	}
	if behind, ok := diag.ClockBehind(text); ok && !a.json() {
		_, _ = fmt.Fprintf(a.err, "The clock of that machine is %s behind the certificate's.\n", behind)
	}
	return showEntries(a, found[:min(len(found), mostLikely)])
}

// showEntries prints the likeliest in full and names the others.
func showEntries(a *app, found []diag.Problem) error {
	var all []listed
	for _, p := range found {
		all = append(all, listed{p, evidence.For(string(p.Code))})
	}
	return a.show(all, func(out io.Writer) error {
		w := &writer{w: out}
		printEntry(w, found[0])
		for i, p := range found[1:] {
			if i == 0 {
				w.linef("\nor it is")
			}
			w.linef("  %s: %s", p.Code, p.Title)
		}
		return w.err
	})
}

func printEntry(w *writer, p diag.Problem) {
	w.linef("%s: %s (%s)", p.Code, p.Title, p.Severity)
	var causes []string
	for _, c := range p.DependsOn {
		causes = append(causes, string(c))
	}
	for _, part := range [][2]string{
		{"symptom", p.Symptom}, {"cause", p.Cause}, {"fix", strings.Join(p.Fix, "\n")},
		{"follows from", strings.Join(causes, ", ")}, {"see", p.Reference},
	} {
		if part[1] != "" {
			w.linef("\n%s\n  %s", part[0], strings.ReplaceAll(strings.TrimSpace(part[1]), "\n", "\n  "))
		}
	}
	if p.Unverified {
		w.linef("\nThis entry was not checked against a source.")
	}
}

// nextExplain is the line that leads from a finding to its entry.
func nextExplain(code string) string { return fmt.Sprintf("gpuctl explain %s", code) }
