package bootstrap

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/k3s"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/internal/bundle"
	"github.com/gpuctl/gpuctl/internal/diag"
)

// bundleOf makes a bundle of the set's versions, changed by change, and opens it.
func bundleOf(t *testing.T, w wanted, change func([]bundle.File) []bundle.File) *offline {
	t.Helper()
	files := []bundle.File{
		{Kind: bundle.Chart, Name: "gpu-operator", Version: w.set.Operator.Version, Suffix: ".tgz"},
		{Kind: bundle.K3s, Name: "k3s", Version: w.set.K3s.Version, Arch: "amd64"},
		{Kind: bundle.Images, Name: "k3s", Version: w.set.K3s.Version, Arch: "amd64", Suffix: ".tar.zst"},
		{Kind: bundle.Images, Name: "gpu", Arch: "amd64", Suffix: ".tar"},
		{Kind: bundle.Packages, Name: "toolkit", Version: w.set.Toolkit.Version, Arch: "amd64", Suffix: ".tar"},
		{Kind: bundle.Packages, Name: "driver-ubuntu2404", Version: w.set.Driver.Branch, Arch: "amd64", Suffix: ".tar"},
	}
	if change != nil {
		files = change(files)
	}
	var contents []bundle.Content
	for _, f := range files {
		data := bytes.Repeat([]byte{0}, 1024) // an empty tar archive
		data = append(data, string(f.Kind)+f.Name+f.Arch...)
		sum := sha256.Sum256(data)
		f.SHA256, f.Size, f.Source, f.Checked, f.License = hex.EncodeToString(sum[:]), int64(len(data)), "here", "the test", "none"
		contents = append(contents, bundle.Content{File: f, WriteTo: func(w io.Writer) error {
			_, err := w.Write(data)
			return err
		}})
	}
	at := filepath.Join(t.TempDir(), "b.tar")
	if err := bundle.Write(at, bundle.Manifest{Set: w.set.Name}, contents, nil, nil); err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Open(at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	o, err := takeBundle(b, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// The chart's pin is the set's; a bundle of the test has another chart.
func unpinned(w wanted) wanted {
	w.set.Operator.SHA256 = ""
	return w
}

func pendingAction(actions []plan.Action, id string) plan.Action {
	i := slices.IndexFunc(actions, hasID(id))
	if i < 0 {
		return plan.Action{}
	}
	return actions[i]
}

// With a bundle nothing of a plan names a place of the internet, and what is
// installed waits for what is sent.
func TestOfflinePlan(t *testing.T) {
	w := unpinned(clusterOf(t, "server-1", "gpu-1"))
	w.bundle = bundleOf(t, w, nil)
	b := w.contents(sightOf(w, 0, 2), pure())
	if diag.AnyBlocks(b.findings) {
		t.Fatalf("%+v", b.findings)
	}
	for _, a := range b.actions {
		for _, c := range a.Changes {
			if strings.Contains(strings.ReplaceAll(c, "https://10.0.0.", ""), "https://") {
				t.Errorf("%s: %s", a.ID, c)
			}
		}
	}
	for id, needs := range map[string][]string{
		k3s.ActionID("gpu-1"): {"gpu-1/bundle-k3s-images", "gpu-1/bundle-gpu-images", k3s.BinaryID("gpu-1")},
		"gpu-1/toolkit":       {"gpu-1/bundle-toolkit-packages"},
		operatorID:            {"gpu-1/bundle-gpu-images", "server-1/bundle-gpu-images"},
	} {
		a := pendingAction(b.actions, id)
		for _, n := range needs {
			if !slices.Contains(a.Needs, n) || pendingAction(b.actions, n).ID == "" {
				t.Errorf("%s needs %v, not %s", id, a.Needs, n)
			}
		}
	}
	if a := pendingAction(b.actions, "gpu-1/bundle-gpu-images"); !a.Ahead || !strings.Contains(strings.Join(a.Changes, " "), "/var/lib/rancher/k3s/agent/images/gpuctl-gpu-") {
		t.Errorf("%+v", a)
	}
	if a := pendingAction(b.actions, k3s.BinaryID("gpu-1")); !strings.HasPrefix(a.Title, "send k3s") {
		t.Errorf("%+v", a)
	}
	if a := pendingAction(b.actions, "gpu-1/bundle-driver-ubuntu2404-packages"); a.ID != "" {
		t.Errorf("a driver is sent that nobody installs: %+v", a)
	}
	rel, _ := w.operator(sight{})
	if filepath.Ext(rel.Chart.Repository) != ".tgz" || rel.Chart.SHA256 == "" {
		t.Errorf("chart %+v", rel.Chart)
	}
}

// With the embedded registry the server switches it on, and every node names the
// registries that are shared; entries of the user's stay.
func TestEmbeddedRegistry(t *testing.T) {
	w := clusterOf(t, "server-1", "gpu-1")
	w.config.Spec.Kubernetes.EmbeddedRegistry = true
	w.config.Spec.Kubernetes.Registries = map[string]any{"mirrors": map[string]any{"docker.io": map[string]any{"endpoint": []any{"https://mirror.example"}}}}
	s := sightOf(w, 0, 1)
	for i, m := range w.machines {
		want := w.k3s(m, s, w.network(s))
		text := ""
		for _, f := range k3s.Files(want) {
			text += f.Content
		}
		if on := strings.Contains(text, "embedded-registry: true\n"); on != (i == 0) {
			t.Errorf("%s: switched on: %v", m.Name, on)
		}
		merged, changed, err := k3s.MergeRegistries(nil, want.Registries, want.ImageMirror)
		if err != nil || !changed {
			t.Fatalf("%s: %v", m.Name, err)
		}
		for _, line := range []string{"  nvcr.io: {}\n", "  registry.k8s.io: {}\n", "- https://mirror.example\n"} {
			if !strings.Contains(merged, line) {
				t.Errorf("%s: %q is missing in\n%s", m.Name, line, merged)
			}
		}
	}
}

// Without a bundle nothing is sent.
func TestNoBundle(t *testing.T) {
	w := clusterOf(t, "server-1", "gpu-1")
	for _, a := range w.contents(sightOf(w, 0, 2), pure()).actions {
		if strings.Contains(a.ID, "/bundle-") || strings.HasPrefix(a.Title, "send ") {
			t.Errorf("%+v", a)
		}
	}
}

// A bundle for something else stops the machine before anything is changed.
func TestBundleLacks(t *testing.T) {
	without := func(kind bundle.Kind, name string) func([]bundle.File) []bundle.File {
		return func(all []bundle.File) []bundle.File {
			return slices.DeleteFunc(all, func(f bundle.File) bool { return f.Kind == kind && f.Name == name })
		}
	}
	for want, change := range map[string]func([]bundle.File) []bundle.File{
		"": nil,
		"k3s v1.36.3+k3s1 for amd64": func(all []bundle.File) []bundle.File {
			all[1].Version = "v1.30.0+k3s1"
			return all
		},
		"images for amd64": func(all []bundle.File) []bundle.File {
			all[2].Arch, all[3].Arch = "arm64", "arm64"
			return all
		},
		"Container Toolkit":   without(bundle.Packages, "toolkit"),
		"chart gpu-operator ": without(bundle.Chart, "gpu-operator"),
	} {
		w := unpinned(clusterOf(t, "server-1", "gpu-1"))
		w.bundle = bundleOf(t, w, change)
		var evidence string
		for _, f := range w.contents(sightOf(w, 0, 2), pure()).findings {
			if f.Code == "bundle-lacks" && f.Machine == "gpu-1" {
				evidence = f.Evidence
			}
		}
		if (evidence == "") != (want == "") || !strings.Contains(evidence, want) {
			t.Errorf("lacks %q: %q", want, evidence)
		}
	}
}
