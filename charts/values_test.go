package charts

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "values", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (run with -update if this is meant):\n%s", file, got)
	}
}

// table prints values as the golden files hold them: value, whether a manifest of
// the chart that is here shows it (see TestValuesMarkedRenderedAre), its source.
func table(chart string, values []Value) string {
	var b strings.Builder
	for _, v := range values {
		text, err := json.Marshal(v.Value)
		if err != nil {
			return err.Error()
		}
		mark := "not rendered"
		if v.Rendered {
			mark = "rendered by " + chart
		}
		if inner(v.Path) {
			mark = "for NFD's chart, which was not rendered"
		}
		if newer(v.Path) {
			mark = "not rendered: " + chart + " is older than this value"
		}
		fmt.Fprintf(&b, "# %s [%s]\n%s: %s\n", v.Why, mark, v.Path, text)
	}
	return b.String()
}

// inner says whether a value is for the chart of NFD inside a chart.
func inner(path string) bool {
	return strings.HasPrefix(path, "node-feature-discovery.") || strings.HasPrefix(path, "nfd.") && path != "nfd.enabled"
}

// newer says whether the chart that is here does not know a value yet: NRI came with 26.3.
func newer(path string) bool { return path == "cdi.nriPluginEnabled" }

func TestOperatorValuesPerSetAndMode(t *testing.T) {
	modes := modesOf()
	for _, name := range Names() {
		set, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		for mode, want := range modes {
			if want.RuntimePath == "" {
				want.RuntimePath = set.Operator.RuntimePath
			}
			golden(t, name+"-"+mode+".yaml", table("gpu-operator at d73a0086a6ba", OperatorTable(want)))
			if !want.OperatorDriver && set.Plugin.Chart != "" {
				golden(t, name+"-plugin-"+mode+".yaml", table("nvidia-device-plugin v0.18.0", PluginTable(want)))
			}
		}
	}
}

func TestOperatorValuesNest(t *testing.T) {
	values := OperatorValues(Want{RuntimePath: RuntimeCDI})
	driver, _ := values["driver"].(map[string]any)
	cdi, _ := values["cdi"].(map[string]any)
	if driver["enabled"] != false || cdi["enabled"] != true {
		t.Errorf("got %v", values)
	}
	worker := values["node-feature-discovery"].(map[string]any)["worker"].(map[string]any)
	if !strings.Contains(fmt.Sprint(worker["tolerations"]), UnprovenTaint) {
		t.Errorf("NFD's worker does not tolerate an unproven node: %v", worker)
	}
}

func TestMergeListsOverrides(t *testing.T) {
	base := OperatorValues(Want{})
	user := map[string]any{
		"driver":  map[string]any{"enabled": true, "version": "595.91.07"},
		"toolkit": map[string]any{"enabled": false},
		"mine":    1,
	}
	merged, overrides := Merge(base, user)
	if !reflect.DeepEqual(overrides, []string{"driver.enabled"}) {
		t.Errorf("overrides are %v: equal values and new keys are none", overrides)
	}
	driver := merged["driver"].(map[string]any)
	if driver["enabled"] != true || driver["version"] != "595.91.07" || merged["mine"] != 1 {
		t.Errorf("got %v", merged)
	}
	if base["driver"].(map[string]any)["enabled"] != false {
		t.Error("the base was changed")
	}
}

func TestHashValuesIgnoresNumberTypesAndOrder(t *testing.T) {
	a, err := HashValues(map[string]any{"n": uint64(1), "l": []any{"a"}, "m": map[string]any{"x": true, "y": 2}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := HashValues(map[string]any{"m": map[string]any{"y": 2.0, "x": true}, "l": []any{"a"}, "n": float64(1)})
	if err != nil || a != b {
		t.Errorf("equal values have hashes %s and %s, %v", a, b, err)
	}
	empty, _ := HashValues(nil)
	none, _ := HashValues(map[string]any{})
	if empty != none || empty == a {
		t.Error("nil and empty values must be the same, and not those above")
	}
}
