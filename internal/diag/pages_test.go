package diag

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/failures anew")

// docs/failures is made of the catalogue: go test ./internal/diag -run Pages -update.
func TestPagesAreTheCatalogue(t *testing.T) {
	dir := filepath.Join("..", "..", "docs", "failures")
	pages := pages()
	if *update {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range pages {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	there, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range there {
		if _, ok := pages[e.Name()]; !ok {
			t.Errorf("docs/failures/%s is no page of the catalogue", e.Name())
		}
	}
	for name, text := range pages {
		have, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || string(have) != text {
			t.Errorf("docs/failures/%s is not what the catalogue says (%v): go test ./internal/diag -run Pages -update", name, err)
		}
	}
}

func areas() [][2]string {
	return [][2]string{
		{"machine", "The machine and the way into it"}, {"network", "Networks and registries"}, {"driver", "The NVIDIA driver"},
		{"toolkit", "The Container Toolkit and containerd"}, {"gpu", "GPUs"}, {"cluster", "k3s and the GPU Operator"},
		{"workload", "Pods and the smoke test"}, {"tool", "gpuctl itself"},
	}
}

func pages() map[string]string {
	out := map[string]string{}
	var index strings.Builder
	index.WriteString("# Failures\n\nWhat gpuctl knows to go wrong, one entry for each failure. `gpuctl explain CODE` prints an entry, `gpuctl explain \"error text\"` finds it.\nThese pages are made from the catalogue in `internal/diag`.\n")
	for _, a := range areas() {
		var page strings.Builder
		fmt.Fprintf(&page, "# %s\n", a[1])
		fmt.Fprintf(&index, "\n## [%s](%s.md)\n\n| code | severity | failure |\n| --- | --- | --- |\n", a[1], a[0])
		for _, p := range Catalogue() {
			if p.Area == a[0] {
				fmt.Fprintf(&index, "| [%s](%s.md#%s) | %s | %s |\n", p.Code, a[0], p.Code, p.Severity, p.Title)
				page.WriteString(entry(p))
			}
		}
		out[a[0]+".md"] = page.String()
	}
	out["README.md"] = index.String()
	return out
}

func entry(p Problem) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n## %s\n\n**%s** (%s)\n", p.Code, p.Title, p.Severity)
	if p.Unverified {
		b.WriteString("\nNot checked against a source; never stops a run.\n")
	}
	fmt.Fprintf(&b, "\n- Symptom: %s\n- Cause: %s\n", p.Symptom, p.Cause)
	b.WriteString("- Fix:\n")
	for i, f := range p.Fix {
		fmt.Fprintf(&b, "  %d. %s\n", i+1, f)
	}
	if len(p.DependsOn) > 0 {
		var causes []string
		for _, c := range p.DependsOn {
			q, _ := Lookup(c)
			causes = append(causes, fmt.Sprintf("[%s](%s.md#%s)", c, q.Area, c))
		}
		fmt.Fprintf(&b, "- Follows from: %s\n", strings.Join(causes, ", "))
	}
	if p.Reference != "" {
		fmt.Fprintf(&b, "- See: %s\n", p.Reference)
	}
	return b.String()
}
