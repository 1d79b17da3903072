package diag

import (
	"strings"
	"testing"
)

func TestReduceHidesConsequences(t *testing.T) {
	for name, c := range map[string]struct{ in, out string }{
		"cause and consequence":             {"gpu-lost@a gpu-count-differs@a", "gpu-lost@a"},
		"at another machine":                {"gpu-lost@a gpu-count-differs@b", "gpu-lost@a gpu-count-differs@b"},
		"no cause":                          {"gpu-count-differs@a gpu-busy@a", "gpu-count-differs@a gpu-busy@a"},
		"through one that was not found":    {"nouveau-loaded@a smoke-nothing-allocatable@a", "nouveau-loaded@a"},
		"the cluster's explains a machine":  {"nfd-labels-missing@ smoke-nothing-allocatable@a", "nfd-labels-missing@"},
		"a machine's explains the cluster":  {"operand-waits@a operator-not-ready@", "operand-waits@a"},
		"two causes, one consequence, once": {"fabric-manager-down@a fabric-not-ready@a smoke-compute-failed@a", "fabric-manager-down@a"},
		"nothing":                           {"", ""},
	} {
		var in []Finding
		for _, f := range strings.Fields(c.in) {
			code, machine, _ := strings.Cut(f, "@")
			in = append(in, Found(Code(code), machine, "x"))
		}
		var got []string
		for _, f := range Reduce(in) {
			got = append(got, string(f.Code)+"@"+f.Machine)
		}
		if s := strings.Join(got, " "); s != c.out {
			t.Errorf("%s: %s, want %s", name, s, c.out)
		}
	}
}

// An Xid of the past only warns: it must not hide that a GPU is missing now.
func TestWhatBlocksIsNotHiddenByAWarning(t *testing.T) {
	lost, fewer := Found("gpu-lost", "a", "Xid 79"), Found("gpu-count-differs", "a", "7 of 8")
	lost.Severity = Warns
	if got := Reduce([]Finding{lost, fewer}); len(got) != 2 || !AnyBlocks(got) {
		t.Errorf("%+v", got)
	}
}

// A cycle would hide both of its ends.
func TestDependenciesHaveNoCycle(t *testing.T) {
	for _, p := range Catalogue() {
		seen := map[Code]bool{}
		next := append([]Code{}, p.DependsOn...)
		for len(next) > 0 {
			c := next[0]
			next = next[1:]
			if c == p.Code {
				t.Fatalf("%s depends on itself", p.Code)
			}
			if !seen[c] {
				seen[c] = true
				q, _ := Lookup(c)
				next = append(next, q.DependsOn...)
			}
		}
	}
}
