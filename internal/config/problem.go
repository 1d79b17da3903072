package config

import (
	"fmt"
	"sort"
	"strings"
)

// Problem is one thing wrong with a file.
type Problem struct {
	// Line and Column start at 1; 0 means the file as a whole.
	Line, Column int
	// Field is where in the file, "spec.machines[1].host".
	Field string
	// Message says what is wrong, and what would be right where that is known.
	Message string
}

// InvalidError is every problem of one file, in the order of the file. It never
// quotes the value of a field whose name is that of a secret.
type InvalidError struct {
	// File is the file's name as given to Parse.
	File     string
	Problems []Problem
}

// Error is one line per problem, without what is not known: "gpuctl.yaml:12:5: spec.ssh.usr: unknown field; did you mean \"user\"?".
func (e *InvalidError) Error() string {
	var lines []string
	for _, p := range e.Problems {
		at := e.File
		if p.Line > 0 {
			at = fmt.Sprintf("%s:%d:%d", e.File, p.Line, p.Column)
		}
		var parts []string
		for _, part := range []string{at, p.Field, p.Message} {
			if part != "" {
				parts = append(parts, part)
			}
		}
		lines = append(lines, strings.Join(parts, ": "))
	}
	return strings.Join(lines, "\n")
}

func (e *InvalidError) sort() {
	sort.SliceStable(e.Problems, func(i, j int) bool {
		a, b := e.Problems[i], e.Problems[j]
		if a.Line != b.Line {
			return a.Line < b.Line
		}
		return a.Column < b.Column
	})
}
