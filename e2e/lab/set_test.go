package lab

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/gpuctl/gpuctl/e2e/lab/mirror"
)

func TestSetFileNamesWhatIsServed(t *testing.T) {
	l := &Lab{ID: "x", Dir: t.TempDir(), options: Options{NoGPU: true}}
	binary := filepath.Join(t.TempDir(), "k3s")
	if err := os.WriteFile(binary, []byte("synthetic"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := mirror.WriteK3s(filepath.Join(l.mirrorDir(), "k3s"), K3sVersion, binary, ""); err != nil {
		t.Fatal(err)
	}
	path, err := l.SetFile()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var set struct {
		APIVersion, Kind string
		K3s              struct {
			Version string
			SHA256  map[string]string
		}
		Toolkit struct{ Version, KeyFingerprint string }
	}
	if err := yaml.Unmarshal(text, &set); err != nil {
		t.Fatal(err)
	}
	sum, err := mirror.SHA256(binary)
	if err != nil {
		t.Fatal(err)
	}
	if set.APIVersion != "gpuctl.dev/v1alpha1" || set.Kind != "Set" || set.K3s.Version != K3sVersion || set.K3s.SHA256["amd64"] != sum {
		t.Errorf("set is %+v", set)
	}
	if !regexp.MustCompile(`^[0-9A-F]{40}$`).MatchString(set.Toolkit.KeyFingerprint) {
		t.Errorf("fingerprint is %q", set.Toolkit.KeyFingerprint)
	}
}
