package main

import "github.com/gpuctl/gpuctl/internal/diag"

// explained is the entry of the catalogue behind a failure: what it is, whence
// it comes and the first thing to do.
func explained(w *writer, code string) {
	p, ok := diag.Lookup(diag.Code(code))
	if !ok {
		w.linef("    known failure: %s", nextExplain(code))
		return
	}
	w.linef("    known failure: %s: %s", p.Code, p.Title)
	if p.Cause != "" {
		w.linef("      cause  %s", p.Cause)
	}
	for i, step := range p.Fix {
		word := "fix"
		if i > 0 {
			word = ""
		}
		w.linef("      %-5s  %s", word, step)
	}
	w.linef("      more   %s", nextExplain(code))
}
