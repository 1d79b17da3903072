package diag

import (
	"errors"
	"sort"
	"strings"
)

// Coded is an error that knows its entry of the catalogue.
type Coded interface {
	error
	DiagCode() Code
}

// Explain finds the entry that explains an error: the code the error carries,
// else the entry whose fragments fit its text best.
func Explain(err error) (Problem, bool) {
	if err == nil {
		return Problem{}, false
	}
	var coded Coded
	if errors.As(err, &coded) {
		if p, ok := Lookup(coded.DiagCode()); ok {
			return p, true
		}
	}
	found := ExplainText(err.Error())
	if len(found) == 0 {
		return Problem{}, false
	}
	return found[0], true
}

// ExplainText finds the entries whose fragments stand in a text (an error
// message pasted from anywhere), the longest fragment first.
func ExplainText(text string) []Problem {
	lower := strings.ToLower(text)
	type hit struct {
		p   Problem
		len int
	}
	var hits []hit
	for _, p := range Catalogue() {
		best := 0
		for _, m := range p.Match {
			if len(m) > best && strings.Contains(lower, m) {
				best = len(m)
			}
		}
		if best > 0 {
			hits = append(hits, hit{p, best})
		}
	}
	sort.SliceStable(hits, func(i, j int) bool { return hits[i].len > hits[j].len })
	out := make([]Problem, 0, len(hits))
	for _, h := range hits {
		out = append(out, h.p)
	}
	return out
}
