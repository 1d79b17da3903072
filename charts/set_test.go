package charts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBuiltInSets(t *testing.T) {
	names := Names()
	if len(names) < 2 || names[0] != DefaultSet {
		t.Fatalf("sets are %v; the newest must be the default", names)
	}
	for _, name := range names {
		set, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		if set.Name != name || set.Untested || set.Source != "" {
			t.Errorf("set %s: name %q, untested %v", name, set.Name, set.Untested)
		}
		if got := set.Supports(set.K3s.Version); got != "validated" {
			t.Errorf("set %s: its own k3s %s is %s", name, set.K3s.Version, got)
		}
		if _, known := set.Checksum("amd64"); !known || set.Operator.SHA256 == "" {
			t.Errorf("set %s: k3s on amd64 or the operator's chart is not pinned by digest", name)
		}
	}
	set, err := Load("")
	if err != nil || set.Name != DefaultSet {
		t.Errorf("the empty name gives %q, %v", set.Name, err)
	}
	if _, err := Load("27.1"); err == nil || !strings.Contains(err.Error(), "known are 26.7, 26.3") {
		t.Errorf("an unknown name: %v", err)
	}
}

func TestOwnSetIsUntested(t *testing.T) {
	text, err := setFiles.ReadFile("sets/26.7.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "mine.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	set, err := Load(file)
	if err != nil || !set.Untested || set.Source != file {
		t.Errorf("got %+v, %v", set, err)
	}
}

func TestParseSetRefuses(t *testing.T) {
	good, err := setFiles.ReadFile("sets/26.7.yaml")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, old, new, want string }{
		{"unknown key, with its place", "  floor: \"1.33\"", "  flor: \"1.33\"", ":3] unknown field \"flor\""},
		{"k3s version", "v1.36.3+k3s1", "1.36", `k3s.version "1.36"`},
		{"short digest", "6d1b282d", "6d1b", "operator.sha256"},
		{"architecture", "    amd64:", "    x86_64:", `"x86_64" is no architecture`},
		{"runtime path", "runtimePath: cdi", "runtimePath: magic", "operator.runtimePath"},
		{"program with a blank", "[/cuda-samples/vectorAdd,", "[\"/a b\",", "smoke.vectorAdd"},
		{"fingerprint", "C95B321B", "c95b321b", "toolkit.keyFingerprint"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if !strings.Contains(string(good), tt.old) {
				t.Fatalf("the set has no %q", tt.old)
			}
			_, err := ParseSet([]byte(strings.Replace(string(good), tt.old, tt.new, 1)))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want ...%s...", err, tt.want)
			}
		})
	}
}

func TestSupports(t *testing.T) {
	set, err := Load("26.7")
	if err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string]string{
		"v1.36.3+k3s1": "validated", "v1.37.1+k3s1": "unlisted", "v1.30.0": "below", "rubbish": "below", "1.33": "validated",
	} {
		if got := set.Supports(version); got != want {
			t.Errorf("%s is %s, want %s", version, got, want)
		}
	}
	if !set.Validates("ubuntu", "24.04") || set.Validates("debian", "12") {
		t.Error("operating systems are judged wrongly")
	}
}

func TestSmokeRef(t *testing.T) {
	p := SmokePin{Image: "host:5000/a/b:tag"}
	if got := p.Ref(); got != "host:5000/a/b:tag" {
		t.Errorf("by tag: %s", got)
	}
	p.Digest = "sha256:" + strings.Repeat("0", 64)
	if got := p.Ref(); got != "host:5000/a/b@"+p.Digest {
		t.Errorf("by digest: %s", got)
	}
	p.Image = "host:5000/a/b"
	if got := p.Ref(); got != "host:5000/a/b@"+p.Digest {
		t.Errorf("without a tag: %s", got)
	}
}

func FuzzParseSet(f *testing.F) {
	good, err := setFiles.ReadFile("sets/26.7.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte("a: [1"))
	f.Fuzz(func(t *testing.T, text []byte) {
		set, err := ParseSet(text)
		if err == nil && set.check() != nil {
			t.Error("a set that parsed does not check")
		}
	})
}
