package diag

import (
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
		for _, m := range p.Match {
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
