package k3s

import (
	"context"
	"os"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/bootstrap/remote/remotetest"
	"github.com/gpuctl/gpuctl/internal/diag"
)

// The templates of k3s-io/k3s#11626 and NVIDIA/gpu-operator#992.
func TestTemplateFindings(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string // path on the machine: file in testdata
		code  diag.Code
	}{
		"own template with base": {map[string]string{"/data/k3s/agent/etc/containerd/config-v3.toml.tmpl": "047/b/config-v3.toml.tmpl"}, ""},
		"frozen copy":            {map[string]string{"/x/config.toml.tmpl": "047/d/config.toml.tmpl"}, "containerd-template-frozen"},
		"written by the toolkit": {map[string]string{"/x/config.toml.tmpl": "050/config.toml.tmpl-written-by-toolkit"}, "containerd-template-by-toolkit"},
		"two":                    {map[string]string{"/x/config.toml.tmpl": "047/a/config.toml.tmpl", "/x/config-v3.toml.tmpl": "047/b/config-v3.toml.tmpl"}, "containerd-template-dead"},
		"none":                   {nil, ""},
	} {
		templates := map[string][]byte{}
		for path, file := range c.files {
			data, err := os.ReadFile("testdata/" + file)
			if err != nil {
				t.Fatal(err)
			}
			templates[path] = data
		}
		got := TemplateFindings("gpu-1", templates)
		if c.code == "" && len(got) > 0 || c.code != "" && (len(got) != 1 || got[0].Code != c.code) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestGeneration(t *testing.T) {
	for want, templates := range map[int][][]string{
		2: {{"/x/config.toml.tmpl"}},
		3: {nil, {"/x/config-v3.toml.tmpl"}, {"/x/config.toml.tmpl", "/x/config-v3.toml.tmpl"}},
	} {
		for _, list := range templates {
			if got := Generation(list); got != want {
				t.Errorf("%v: %d, want %d", list, got, want)
			}
		}
	}
}

func TestReadTemplates(t *testing.T) {
	on := remotetest.New(t)
	on.Expect("read containerd templates").Do(func(_ context.Context, c remote.Cmd, _ []byte) (remote.Result, error) {
		return remote.Result{Stdout: []byte("motd\n" + c.Args[0] + " /x/a.tmpl\nline\n\n" + c.Args[0] + " /x/b.tmpl\n")}, nil
	})
	got, err := ReadTemplates(context.Background(), on, []string{"/x/a.tmpl", "/x/b.tmpl"})
	if err != nil || string(got["/x/a.tmpl"]) != "line\n\n" || len(got) != 2 {
		t.Errorf("%q %v", got, err)
	}
}
