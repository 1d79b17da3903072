package bootstrap

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// render prints a book as the golden files hold it.
func render(b book) string {
	var out strings.Builder
	for _, f := range b.findings {
		fmt.Fprintf(&out, "finding %s %s %s: %s\n", f.Severity, f.Machine, f.Code, f.Evidence)
	}
	fmt.Fprintf(&out, "network %s (%s)\n", b.network.Backend, b.network.Reason)
	for _, a := range b.actions {
		fmt.Fprintf(&out, "\n%s: %s\n  because %s\n", a.ID, a.Title, a.Reason)
		for _, c := range a.Chosen {
			fmt.Fprintf(&out, "  * %s\n", c)
		}
		for _, c := range a.Changes {
			fmt.Fprintf(&out, "  - %s\n", c)
		}
		if len(a.Needs) > 0 {
			fmt.Fprintf(&out, "  needs %s\n", strings.Join(a.Needs, ", "))
		}
		if len(a.After) > 0 {
			fmt.Fprintf(&out, "  after %s\n", strings.Join(a.After, ", "))
		}
		if a.Barrier {
			fmt.Fprintln(&out, "  barrier")
		}
		if a.Consent != "" {
			fmt.Fprintf(&out, "  consent %s\n", a.Consent)
		}
	}
	return out.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", filepath.FromSlash(name)+".golden")
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (run with -update after reading the difference):\n%s", file, got)
	}
}
