package charts

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// upstream loads a chart of testdata/upstream, whose README names the commits.
func upstream(t *testing.T, name string) *chart.Chart {
	t.Helper()
	c, err := loader.LoadDir(filepath.Join("testdata", "upstream", name))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// rendered are the manifests of a chart, one text.
func rendered(t *testing.T, c *chart.Chart, table []Value) string {
	t.Helper()
	values := map[string]any{}
	for _, v := range table {
		put(values, strings.Split(v.Path, "."), v.Value)
	}
	all, err := chartutil.ToRenderValues(c, plainJSON(t, values), chartutil.ReleaseOptions{Name: c.Name(), Namespace: "gpu"}, chartutil.DefaultCapabilities)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(c, all)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for name := range files {
		if strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var out strings.Builder
	for _, name := range names {
		out.WriteString("---\n" + files[name] + "\n")
	}
	return out.String()
}

// plainJSON are values as they come out of Helm's records.
func plainJSON(t *testing.T, v map[string]any) map[string]any {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// modesOf are the wishes whose values are pinned.
func modesOf() map[string]Want {
	return map[string]Want{
		"host":       {},
		"operator":   {OperatorDriver: true, DriverVersion: "580.173.02", DriverModules: "open"},
		"twoengines": {OperatorDriver: true, ContainerdConfig: "/var/lib/rancher/k3s/" + K3sContainerdConfig},
		"sharing": {ForeignNFD: true, ServiceMonitors: true, Taints: []string{"example.com/team"},
			PluginConfigs: map[string]string{"slices": "version: v1\n"}, PluginDefault: "slices"},
		"mig":          {MIG: "mixed", MIGReboot: true},
		"migcounts":    {MIG: "mixed", MIGConfigs: "version: v1\nmig-configs: {}\n"},
		"runtimeclass": {RuntimePath: RuntimeClass},
		"nri":          {RuntimePath: RuntimeNRI},
	}
}

// probe is another value of the same kind, which can be found again.
func probe(v any) any {
	switch v := v.(type) {
	case bool:
		return !v
	case []any:
		return []any{map[string]any{"key": "gpuctl-probe", "name": "gpuctl-probe", "operator": "Exists", "value": "gpuctl-probe"}}
	case map[string]any:
		return map[string]any{"gpuctl-probe": "version: v1\n"}
	}
	return "gpuctl-probe"
}

// TestValuesMarkedRenderedAre changes one value at a time and looks whether a
// manifest shows it. Values of a chart inside the chart (NFD) are not looked at.
func TestValuesMarkedRenderedAre(t *testing.T) {
	for name, table := range map[string]func(Want) []Value{"gpu-operator": OperatorTable, "nvidia-device-plugin": PluginTable} {
		c := upstream(t, name)
		for mode, want := range modesOf() {
			values := table(want)
			before := rendered(t, c, values)
			for i, v := range values {
				if inner(v.Path) || newer(v.Path) || v.Path == "config.default" {
					continue // the last one must be a key of config.map, or the chart refuses
				}
				changed := slices.Clone(values)
				changed[i].Value = probe(v.Value)
				if strings.HasPrefix(v.Path, "config.map") {
					changed = append(changed, Value{Path: "config.default", Value: "gpuctl-probe"})
				}
				after := rendered(t, c, changed)
				shown := after != before
				if _, flag := v.Value.(bool); !flag {
					shown = strings.Contains(after, "gpuctl-probe")
				}
				if v.Rendered && !shown {
					t.Errorf("%s %s: %s is marked rendered, and no manifest shows it", name, mode, v.Path)
				}
				if !v.Rendered && v.Path != "devicePlugin.config.create" && strings.Contains(after, "gpuctl-probe") {
					t.Errorf("%s %s: %s is marked not rendered, and a manifest shows it", name, mode, v.Path)
				}
			}
		}
	}
}

// TestClusterPolicyFitsItsType holds what our values make of the chart against
// the schema of its type: fields that it does not know, and wrong types.
func TestClusterPolicyFitsItsType(t *testing.T) {
	schema := clusterPolicySchema(t)
	c := upstream(t, "gpu-operator")
	tables := map[string][]Value{"held": append(OperatorTable(Want{}), Value{Path: "daemonsets.updateStrategy", Value: onDelete})}
	for mode, want := range modesOf() {
		tables[mode] = OperatorTable(want)
	}
	for mode, values := range tables {
		objects, err := decodeAll([]byte(rendered(t, c, values)))
		if err != nil {
			t.Fatalf("%s: %v", mode, err)
		}
		i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "ClusterPolicy" })
		if i < 0 {
			t.Fatalf("%s: no ClusterPolicy", mode)
		}
		for _, why := range misfits(schema, objects[i].Object, "") {
			t.Errorf("%s: %s", mode, why)
		}
		text, err := yaml.Marshal(objects[i].Object)
		if err != nil {
			t.Fatal(err)
		}
		golden(t, filepath.Join("..", "rendered", mode+".yaml"), "# The ClusterPolicy that gpu-operator at d73a0086a6ba makes of gpuctl's values.\n"+string(text))
	}
	broken := map[string]any{"spec": map[string]any{
		"driver": map[string]any{"enabled": "yes", "verzion": "1"}, "mig": map[string]any{"strategy": "both"}, "daemonsets": []any{},
	}}
	got := strings.Join(misfits(schema, broken, ""), "\n")
	for _, want := range []string{"spec.driver.enabled", "spec.driver.verzion: is not known", "spec.mig.strategy", "spec.daemonsets"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not found wrong:\n%s", want, got)
		}
	}
}

func clusterPolicySchema(t *testing.T) map[string]any {
	t.Helper()
	text, err := os.ReadFile("testdata/upstream/gpu-operator/crds/nvidia.com_clusterpolicies.yaml")
	if err != nil {
		t.Fatal(err)
	}
	objects, err := decodeAll(text)
	if err != nil || len(objects) != 1 {
		t.Fatalf("%d objects, %v", len(objects), err)
	}
	versions, _, err := unstructured.NestedSlice(objects[0].Object, "spec", "versions")
	if err != nil || len(versions) != 1 {
		t.Fatalf("%d versions, %v", len(versions), err)
	}
	schema, ok, err := unstructured.NestedMap(versions[0].(map[string]any), "schema", "openAPIV3Schema")
	if err != nil || !ok {
		t.Fatalf("no schema: %v", err)
	}
	return schema
}

// misfits says where a value is not as an OpenAPI v3 schema of a type wants it.
func misfits(schema map[string]any, v any, at string) []string {
	if v == nil || schema["x-kubernetes-preserve-unknown-fields"] == true || schema["x-kubernetes-int-or-string"] == true {
		return nil
	}
	wrong := func(format string, args ...any) []string { return []string{at + ": " + fmt.Sprintf(format, args...)} }
	switch schema["type"] {
	case "object":
		m, ok := v.(map[string]any)
		if !ok {
			return wrong("is %T, not a map", v)
		}
		return misfitsOfMap(schema, m, at)
	case "array":
		list, ok := v.([]any)
		if !ok {
			return wrong("is %T, not a list", v)
		}
		items, _ := schema["items"].(map[string]any)
		var out []string
		for i, item := range list {
			out = append(out, misfits(items, item, fmt.Sprintf("%s[%d]", at, i))...)
		}
		return out
	case "string":
		text, ok := v.(string)
		if !ok {
			return wrong("is %T, not a text", v)
		}
		if allowed, ok := schema["enum"].([]any); ok && !slices.Contains(allowed, any(text)) {
			return wrong("%q is none of %v", text, allowed)
		}
		if pattern, ok := schema["pattern"].(string); ok && !regexp.MustCompile(pattern).MatchString(text) {
			return wrong("%q does not match %s", text, pattern)
		}
	case "boolean":
		if _, ok := v.(bool); !ok {
			return wrong("is %T, not true or false", v)
		}
	case "integer", "number":
		switch v.(type) {
		case int64, float64:
		default:
			return wrong("is %T, not a number", v)
		}
	}
	return nil
}

func misfitsOfMap(schema, m map[string]any, at string) []string {
	properties, _ := schema["properties"].(map[string]any)
	more, open := schema["additionalProperties"].(map[string]any)
	var out []string
	for key, v := range m {
		path := strings.TrimPrefix(at+"."+key, ".")
		inner, known := properties[key].(map[string]any)
		switch {
		case known:
			out = append(out, misfits(inner, v, path)...)
		case open:
			out = append(out, misfits(more, v, path)...)
		case properties != nil:
			out = append(out, path+": is not known")
		}
	}
	required, _ := schema["required"].([]any)
	for _, r := range required {
		key, _ := r.(string)
		inner, _ := properties[key].(map[string]any)
		if m[key] == nil && inner["default"] == nil {
			out = append(out, strings.TrimPrefix(at+"."+key, ".")+": is missing")
		}
	}
	slices.Sort(out)
	return out
}
