package ui

import (
	"fmt"
	"io"
	"strings"

	"github.com/gpuctl/gpuctl/internal/diag"
)

// Findings writes each finding with its cause and its fix. Those that only
// inform are left out unless verbose.
func Findings(w io.Writer, style Style, findings []diag.Finding, verbose bool) error {
	var b strings.Builder
	for _, f := range findings {
		word := style.red("blocks")
		switch f.Severity {
		case diag.Warns:
			word = style.yellow("warns")
		case diag.Informs:
			if !verbose {
				continue
			}
			word = style.dim("informs")
		}
		where := f.Machine
		if where == "" {
			where = "cluster"
		}
		fmt.Fprintf(&b, "%s %s: %s\n", word, oneLine(where), f.Code)
		fmt.Fprintf(&b, "  seen   %s\n", indent(Clean(f.Evidence), "         "))
		if p, ok := diag.Lookup(f.Code); ok && f.Severity != diag.Informs {
			if p.Cause != "" {
				fmt.Fprintf(&b, "  cause  %s\n", indent(p.Cause, "         "))
			}
			if len(p.Fix) > 0 {
				fmt.Fprintf(&b, "  fix    %s\n", indent(strings.Join(p.Fix, "\n"), "         "))
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Problem is the error that ended a command and what helps, as printed last.
func Problem(style Style, message string, hints []string) string {
	var b strings.Builder
	b.WriteString(style.red("error:") + " " + indent(Clean(message), "  "))
	for _, h := range hints {
		b.WriteString("\n  " + style.dim("try:") + " " + indent(Clean(h), "       "))
	}
	return b.String()
}
