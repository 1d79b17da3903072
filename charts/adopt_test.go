package charts

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

// Releases as case 058 (helm/helm#30601, NVIDIA/gpu-operator#826) met them: a
// generated name whose only install failed, and another namespace whose upgrade
// was cut off over a revision that was good.
func TestAdopt(t *testing.T) {
	theirs := map[string]any{"driver": map[string]any{"enabled": true}, "toolkit": map[string]any{"enabled": true}}
	rel := Release{Name: "gpu-operator", Namespace: "gpu-operator", Owner: "me", Adopt: true,
		Chart: Chart{Name: "gpu-operator", Version: "v26.7.0", SHA256: "abc"}, Values: map[string]any{"driver": map[string]any{"enabled": false}}}
	cut := State{Phase: Absent, Foreign: []Foreign{{Namespace: "nvidia", Name: "gpu-operator-1737000001"}}, Other: &State{
		Phase: Pending, Status: "pending-upgrade", Version: "v24.9.2", Values: map[string]any{"half": 1},
		LastGood: 2, GoodVersion: "v24.9.1", GoodValues: theirs, Since: time.Now().Add(-time.Hour)}}

	got, state, ok := Adopt(rel, cut)
	if !ok || got.Name != "gpu-operator-1737000001" || got.Namespace != "nvidia" || got.Chart.Version != "v24.9.1" || got.Chart.SHA256 != "" || !reflect.DeepEqual(got.Values, theirs) {
		t.Errorf("its last good revision is what is kept: got %+v", got)
	}
	if step, _ := Decide(state, got, "h", time.Now()); step != StepRollback {
		t.Errorf("a record left pending is rolled back, got %s", step)
	}
	failed := State{Phase: Failed, Version: "v24.9.2", LastGood: 2, GoodVersion: "v24.9.1", GoodValues: theirs}
	if got, state, ok = Adopt(rel, failed); !ok || got.Chart.Version != "v24.9.1" {
		t.Fatalf("got %+v, %v", got, ok)
	}
	if step, _ := Decide(state, got, "h", time.Now()); step != StepRollback {
		t.Errorf("an upgrade of theirs that failed is taken back, got %s", step)
	}

	asking := rel
	asking.Asked = Asked{Version: "v26.7.0", Values: map[string]any{"devicePlugin": map[string]any{"config": map[string]any{"name": "x"}}}, Taints: []string{"gpuctl.dev/unproven"}}
	got, _, _ = Adopt(asking, cut)
	text, err := json.Marshal(got.Values)
	if err != nil || got.Chart.Version != "v26.7.0" || got.Chart.SHA256 != "abc" || !strings.Contains(string(text), `"driver":{"enabled":true}`) ||
		strings.Count(string(text), "gpuctl.dev/unproven") != 4 || strings.Count(string(text), `"nvidia.com/gpu"`) != 2 || strings.Contains(string(text), "half") {
		t.Errorf("what was asked, and the rest theirs: got %s %s, %v", got.Chart.Version, text, err)
	}

	for name, c := range map[string]struct {
		rel   Release
		state State
	}{
		"not to adopt":     {Release{Name: "gpu-operator"}, cut},
		"nothing there":    {rel, State{Phase: Absent}},
		"two of them":      {rel, State{Phase: Absent, Foreign: make([]Foreign, 2)}},
		"gpuctl's own":     {rel, State{Phase: Deployed, Owner: "me"}},
		"another gpuctl's": {rel, State{Phase: Deployed, Owner: "you"}},
	} {
		if _, _, ok := Adopt(c.rel, c.state); ok {
			t.Errorf("%s: adopted", name)
		}
	}
	if _, _, ok := Adopt(rel, State{Phase: Deployed, Owner: "me", Adopted: true}); !ok {
		t.Error("a release that gpuctl changed once as somebody else's is still theirs")
	}
}

func TestDiffShowsNoSecret(t *testing.T) {
	from := map[string]any{"driver": map[string]any{"enabled": true, "licensingConfig": map[string]any{"secretName": "lic"}}, "n": 1,
		"toolkit":    map[string]any{"env": []any{map[string]any{"name": "NGC_API_KEY", "value": "hunter2"}, map[string]any{"name": "A", "value": "b"}}},
		"repository": "https://me:hunter2@registry.example", "gone": "x", "proxyPassword": "hunter2"}
	to := map[string]any{"driver": map[string]any{"enabled": false, "licensingConfig": map[string]any{"secretName": "other"}}, "n": 1.0,
		"repository": "https://registry.example", "proxyPassword": "hunter3", "adminToken": "hunter4", "new": map[string]any{"deep": []any{1}}}
	var lines []string
	for _, c := range Diff(from, to) {
		lines = append(lines, c.String())
	}
	want := []string{
		`adminToken: (absent) -> "********"`,
		`driver.enabled: true -> false`,
		`driver.licensingConfig.secretName: "lic" -> "other"`,
		`gone: "x" -> (absent)`,
		`new.deep: (absent) -> [1]`,
		`proxyPassword: "********" -> "********"`,
		`repository: "********" -> "https://registry.example"`,
		`toolkit.env: [{"name":"NGC_API_KEY","value":"********"},{"name":"A","value":"b"}] -> (absent)`,
	}
	if !reflect.DeepEqual(lines, want) {
		t.Errorf("got\n%s", strings.Join(lines, "\n"))
	}
	if len(Diff(to, to)) > 0 {
		t.Error("equal values differ")
	}
}
