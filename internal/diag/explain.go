package diag

import (
	"errors"
	"slices"
	"sort"
	"strings"

	"github.com/gpuctl/gpuctl/internal/diag/nearest"
)

// Coded is an error that knows its entry of the catalogue.
type Coded interface {
	error
	DiagCode() Code
}

// Named is Coded for packages that import nothing of this module.
type Named interface {
	error
	DiagCode() string
}

// Explain finds the entry that explains an error: the code the error carries,
// else the entry whose fragments fit its text best.
func Explain(err error) (Problem, bool) {
	if err == nil {
		return Problem{}, false
	}
	if p, ok := Lookup(CodeOf(err)); ok {
		return p, true
	}
	found := ExplainText(err.Error())
	if len(found) == 0 {
		return Problem{}, false
	}
	return found[0], true
}

// CodeOf is the code that an error or one it wraps carries, "" without one.
func CodeOf(err error) Code {
	var coded Coded
	if errors.As(err, &coded) && coded.DiagCode() != "" {
		return coded.DiagCode()
	}
	var named Named
	if errors.As(err, &named) {
		return Code(named.DiagCode())
	}
	return ""
}

// ExplainText finds the entries that a text speaks of (an error message pasted
// from anywhere), that of the longest fragment first, but
// causes before what follows from them.
func ExplainText(text string) []Problem {
	return ranked(text, func(p Problem) []string { return p.Match })
}

// ExplainPasted is ExplainText for what a person shows: behind the entries that a
// text names come those it only hints at.
func ExplainPasted(text string) []Problem {
	out := ExplainText(text)
	for _, p := range ranked(text, func(p Problem) []string { return p.Likely }) {
		if !slices.ContainsFunc(out, func(have Problem) bool { return have.Code == p.Code }) {
			out = append(out, p)
		}
	}
	return out
}

// ranked are the entries of which the text has a fragment.
func ranked(text string, fragments func(Problem) []string) []Problem {
	lower := plain(text)
	type hit struct {
		p   Problem
		len int
	}
	var hits []hit
	for _, p := range Catalogue() {
		best := 0
		for _, m := range fragments(p) {
			if len(m) > best && contains(lower, m) {
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
	return causesFirst(out)
}

// plain is a text in lower case and on one line. The kernel breaks sentences over
// lines, each with the module's name before it, and writes a GPU's address into
// the name of an Xid: "Xid (PCI:0000:41:00): 79, pid=...".
func plain(text string) string {
	text = strings.ToLower(strings.Join(strings.Fields(strings.ReplaceAll(text, "NVRM:", " ")), " "))
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "xid (")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		address, after, whole := strings.Cut(rest, "): ")
		b.WriteString("xid ")
		if text = after; !whole || strings.Contains(address, " ") {
			text = rest
		}
	}
}

// contains says whether a fragment stands in a text; an Xid's number stands there whole.
func contains(text, fragment string) bool {
	digit := func(c byte) bool { return c >= '0' && c <= '9' }
	for {
		at := strings.Index(text, fragment)
		if at < 0 {
			return false
		}
		text = text[at+len(fragment):]
		if !strings.HasPrefix(fragment, "xid ") || text == "" || !digit(text[0]) {
			return true
		}
	}
}

// causesFirst moves entries behind those among them that they follow from.
func causesFirst(all []Problem) []Problem {
	there := map[Code]bool{}
	for _, p := range all {
		there[p.Code] = true
	}
	var causes, rest []Problem
	for _, p := range all {
		if slices.ContainsFunc(p.DependsOn, func(c Code) bool { return there[c] }) {
			rest = append(rest, p)
			continue
		}
		causes = append(causes, p)
	}
	return append(causes, rest...)
}

// Alike finds entries by words: those of which title, symptom and cause share
// most with the text, at most n. It is for texts that no fragment identifies.
func Alike(text string, n int) []Problem {
	asked := words(text)
	all := Catalogue()
	common := map[string]int{}
	for _, p := range all {
		for w := range words(p.Title + " " + p.Symptom + " " + p.Cause) {
			common[w]++
		}
	}
	type hit struct {
		p     Problem
		score float64
	}
	var hits []hit
	for _, p := range all {
		score := 0.0
		for w := range words(p.Title + " " + p.Symptom + " " + p.Cause) {
			// A word that few entries have tells more.
			if asked[w] && common[w] < len(all)/10 {
				score += 1 / float64(common[w])
			}
		}
		if score > 0.2 {
			hits = append(hits, hit{p, score})
		}
	}
	sort.SliceStable(hits, func(i, j int) bool { return hits[i].score > hits[j].score })
	var out []Problem
	for _, h := range hits[:min(n, len(hits))] {
		out = append(out, h.p)
	}
	return out
}

func words(text string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
	}) {
		if len(w) > 2 {
			set[w] = true
		}
	}
	return set
}

// Nearest is the code or alias that differs least from a mistyped one, "" when
// none is near.
func Nearest(name string) string {
	var names []string
	for _, p := range Catalogue() {
		names = append(append(names, string(p.Code)), p.Aliases...)
	}
	// Nothing of a short name may be left of it.
	return nearest.Within(name, names, min(2+len(name)/8, len(name)-1))
}
