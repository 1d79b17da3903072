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

// table prints values as the golden files hold them: value, whether a manifest shows it, its source.
func table(values []Value) string {
	var b strings.Builder
	for _, v := range values {
		text, err := json.Marshal(v.Value)
		if err != nil {
			return err.Error()
		}
		mark := "not rendered"
		if v.Rendered {
			mark = "rendered"
		}
		fmt.Fprintf(&b, "# %s [%s]\n%s: %s\n", v.Why, mark, v.Path, text)
	}
	return b.String()
}

func TestOperatorValuesPerSetAndMode(t *testing.T) {
	modes := map[string]Want{
		"host":     {},
		"operator": {OperatorDriver: true, DriverVersion: "580.173.02"},
		"sharing": {ForeignNFD: true, ServiceMonitors: true, Taints: []string{"example.com/team"},
			PluginConfigs: map[string]string{"slices": "version: v1\n"}, PluginDefault: "slices"},
		"mig":          {MIG: "mixed", MIGReboot: true},
		"migcounts":    {MIG: "mixed", MIGConfigs: "version: v1\nmig-configs: {}\n"},
		"runtimeclass": {RuntimePath: RuntimeClass},
		"nri":          {RuntimePath: RuntimeNRI},
	}
	for _, name := range Names() {
		set, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		for mode, want := range modes {
			if want.RuntimePath == "" {
				want.RuntimePath = set.Operator.RuntimePath
			}
			golden(t, name+"-"+mode+".yaml", table(OperatorTable(want)))
			if mode != "operator" && set.Plugin.Chart != "" {
				golden(t, name+"-plugin-"+mode+".yaml", table(PluginTable(want)))
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
