package cuda

import (
	"fmt"
	"strings"
)

// Term is one comparison of a requirement: "driver>=535".
type Term struct{ Property, Operator, Value string }

// Requirement is what one NVIDIA_REQUIRE_* variable asks for: one of the
// alternatives, of which every term must hold.
type Requirement [][]Term

// String is the requirement as images write it.
func (r Requirement) String() string {
	var alternatives []string
	for _, all := range r {
		var terms []string
		for _, t := range all {
			terms = append(terms, t.Property+t.Operator+t.Value)
		}
		alternatives = append(alternatives, strings.Join(terms, ","))
	}
	return strings.Join(alternatives, " ")
}

// ParseRequirement reads "cuda>=12.8 brand=tesla,driver>=535,driver<536": blanks
// are OR, commas are AND. Terms of unknown properties count for nothing, as the
// Container Toolkit has it; one without an operator is an error. Names are taken
// as they are: the toolkit knows "cuda" and not "CUDA".
func ParseRequirement(text string) (Requirement, error) {
	var out Requirement
	for _, alternative := range strings.Fields(text) {
		var all []Term
		for factor := range strings.SplitSeq(alternative, ",") {
			if factor == "" {
				continue
			}
			t, err := parseTerm(factor)
			if err != nil {
				return nil, err
			}
			if t.known() {
				all = append(all, t)
			}
		}
		if len(all) > 0 {
			out = append(out, all)
		}
	}
	return out, nil
}

func parseTerm(text string) (Term, error) {
	at := strings.IndexAny(text, "<>=!")
	if at < 0 {
		return Term{}, fmt.Errorf("%q compares nothing", text)
	}
	t := Term{Property: text[:at]}
	for _, op := range []string{"!=", "<=", ">=", "=", "<", ">"} {
		if rest, ok := strings.CutPrefix(text[at:], op); ok {
			t.Operator, t.Value = op, rest
			break
		}
	}
	if t.Operator == "" {
		return Term{}, fmt.Errorf("%q has no operator that is known", text)
	}
	if t.known() && t.Property != "brand" && len(numbers(t.Value)) == 0 {
		return Term{}, fmt.Errorf("%q: %q is no version", text, t.Value)
	}
	return t, nil
}

func (t Term) known() bool {
	switch t.Property {
	case "cuda", "driver", "arch", "brand":
		return true
	}
	return false
}

// truth is the answer of a comparison; what is not known is maybe.
type truth int

const (
	no truth = iota
	maybe
	yes
)

// facts are what terms are compared with; empty ones are not known.
type facts struct{ cuda, driver, arch, brand string }

func (r Requirement) holds(f facts) truth {
	if len(r) == 0 {
		return yes
	}
	best := no
	for _, all := range r {
		t := yes
		for _, term := range all {
			t = min(t, term.holds(f))
		}
		best = max(best, t)
	}
	return best
}

func (t Term) holds(f facts) truth {
	have := map[string]string{"cuda": f.cuda, "driver": f.driver, "arch": f.arch, "brand": f.brand}[t.Property]
	if have == "" {
		return maybe
	}
	order := Compare(have, t.Value)
	if t.Property == "brand" {
		order = strings.Compare(have, t.Value)
	}
	ok := map[string]bool{"=": order == 0, "!=": order != 0, "<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}[t.Operator]
	if ok {
		return yes
	}
	return no
}
