package diag

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

func TestCatalogueIsWhole(t *testing.T) {
	code := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	areas := map[string]bool{"machine": true, "network": true, "driver": true, "toolkit": true, "gpu": true, "cluster": true, "workload": true, "tool": true}
	names := map[string]Code{}
	for _, p := range Catalogue() {
		if !code.MatchString(string(p.Code)) {
			t.Errorf("%s is not in kebab case", p.Code)
		}
		for _, n := range append([]string{string(p.Code)}, p.Aliases...) {
			if other, taken := names[n]; taken {
				t.Errorf("%s names both %s and %s", n, other, p.Code)
			}
			names[n] = p.Code
		}
		if p.Title == "" || p.Symptom == "" || p.Cause == "" || len(p.Fix) == 0 || p.Severity == "" {
			t.Errorf("%s lacks title, symptom, cause, fix or severity", p.Code)
		}
		if p.Unverified && p.Severity == Blocks {
			t.Errorf("%s was not checked against a source and blocks", p.Code)
		}
		if !areas[p.Area] {
			t.Errorf("%s: area %q", p.Code, p.Area)
		}
		for _, m := range append(append([]string{}, p.Match...), p.Likely...) {
			if m == "" || m != strings.ToLower(m) {
				t.Errorf("%s: %q is not a lower-case fragment", p.Code, m)
			}
		}
	}
	for _, p := range Catalogue() {
		for _, d := range p.DependsOn {
			if names[string(d)] != d {
				t.Errorf("%s depends on %s, which is not in the catalogue", p.Code, d)
			}
		}
	}
}

func TestFoundKnowsTheSeverity(t *testing.T) {
	if f := Found("driver-missing", "gpu-1", "x"); f.Severity != Blocks || f.Machine != "gpu-1" || !AnyBlocks([]Finding{f}) {
		t.Errorf("%+v", f)
	}
	if f := Found("iptables-reject", "gpu-1", "x"); f.Severity != Warns {
		t.Errorf("an unverified entry blocks: %+v", f)
	}
	if f := Found("no-such-code", "", "x"); f.Severity != Informs || AnyBlocks([]Finding{f}) {
		t.Errorf("%+v", f)
	}
	if p, ok := Lookup("C1"); !ok || p.Code != "driver-version-mismatch" {
		t.Errorf("C1 is %s", p.Code)
	}
}

// rows are the numbers of the source from which the catalogue was made: a
// section each for the machine, k3s and network, driver, toolkit and operator,
// GPU health, and RDMA with storage.
func rows() []string {
	out := []string{"C3b"}
	for section, n := range map[string]int{"A": 24, "B": 32, "C": 25, "D": 43, "E": 12, "F": 15} {
		for i := 1; i <= n; i++ {
			out = append(out, fmt.Sprintf("%s%d", section, i))
		}
	}
	return out
}

func TestEveryRowHasAnEntry(t *testing.T) {
	for _, row := range rows() {
		if _, ok := Lookup(Code(row)); !ok {
			t.Errorf("row %s has no entry", row)
		}
	}
}

// What was written down from memory warns at most and says so.
func TestRowsFromMemoryNeverBlock(t *testing.T) {
	for _, row := range strings.Fields("A16 A22 B7 B13 B14 B16 B17 B18 B27 B30 B31 C12 D13 D15 D34 D41 E4 E5 E10 E11 E12 F4 F7 F8 F10 F11 F12") {
		p, _ := Lookup(Code(row))
		if !p.Unverified || p.Severity == Blocks || AnyBlocks([]Finding{Found(p.Code, "m", "x")}) {
			t.Errorf("row %s: %s is %s, unverified: %t", row, p.Code, p.Severity, p.Unverified)
		}
	}
}
