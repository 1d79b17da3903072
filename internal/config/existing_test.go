package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A cluster that gpuctl did not make needs no machine; machines are agents, a
// lone one too.
func TestExisting(t *testing.T) {
	dir := t.TempDir()
	write := func(spec string) string {
		path := filepath.Join(dir, "gpuctl.yaml")
		text := "apiVersion: gpuctl.dev/v1alpha1\nkind: Cluster\nmetadata: {name: lab}\nspec:\n" + spec
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	c, err := Load(write("  kubernetes: {existing: {kubeconfig: kc/prod.yaml, context: prod, group: g}}\n  groups: [{name: g}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	if e := c.Spec.Kubernetes.Existing; e.Kubeconfig != filepath.Join(dir, "kc/prod.yaml") || e.Context != "prod" || len(c.Inventory().Machines) != 0 {
		t.Errorf("got %+v", e)
	}
	c, err = Load(write("  kubernetes: {existing: {server: 'https://10.0.0.5:6443', token: {env: K3S_TOKEN}}}\n  machines: [{host: 203.0.113.10}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	if m := c.Spec.Machines[0]; m.Role != "agent" {
		t.Errorf("a lone machine that joins is %q", m.Role)
	}
	if env := c.SecretEnv(); !slices.Equal(env, []string{"K3S_TOKEN"}) {
		t.Errorf("programs that are started would inherit the token: %v", env)
	}
}

func TestSelectorsThatCannotHold(t *testing.T) {
	const existing = "  kubernetes: {existing: {kubeconfig: kc}}\n"
	for name, c := range map[string]struct{ spec, want string }{
		"a good one":      {existing + "  groups: [{name: g, selector: {nvidia.com/gpu.product: NVIDIA-L4, pool: gpus}}]\n", ""},
		"sharing's own":   {existing + "  groups: [{name: g, selector: {nvidia.com/gpu.count: \"2\"}}]\n", "nvidia.com/gpu.count changes with the sharing of the node"},
		"no key":          {existing + "  groups: [{name: g, selector: {\"a b\": x}}]\n", `"a b" is no key of a label`},
		"no value":        {existing + "  groups: [{name: g, selector: {a: \"x y\"}}]\n", `"x y" is no value of a label`},
		"of gpuctl's own": {"  groups: [{name: g, selector: {a: b}}]\n  machines: [{host: 203.0.113.1}]\n", "machines of the file name their group"},
		"without the API": {"  kubernetes: {existing: {server: 'https://10.0.0.5:6443', token: {env: T}}}\n  groups: [{name: g, selector: {a: b}}]\n  machines: [{host: 203.0.113.1}]\n", "machines of the file name their group"},
	} {
		_, err := Parse([]byte("apiVersion: gpuctl.dev/v1alpha1\nkind: Cluster\nmetadata: {name: lab}\nspec:\n"+c.spec), "gpuctl.yaml")
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
