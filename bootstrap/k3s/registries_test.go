package k3s

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// The broken and the good file are those of kairos-io/kairos#3738 and k3s-io/k3s#8677.
const (
	brokenRegistries = `mirrors:
  registry.lab.example.net"
  - https://registry.lab.example.net/v2
configs:
  registry.lab.example.net:
    auth:
      token: "made-up"
`
	goodRegistries = `mirrors:
  docker.io:
    endpoint:
      - "https://mirror.lab.example.net"
    rewrite:
      "^library/(.*)": "hub/$1"
configs:
  mirror.lab.example.net:
    auth:
      username: puller
      password: made-up
    tls:
      insecure_skip_verify: true
`
)

func TestCheckRegistries(t *testing.T) {
	for text, want := range map[string]string{
		"":               "",
		goodRegistries:   "",
		brokenRegistries: "line 2: mirrors must be a map of registry -> {endpoint: [...]}",
		"mirrors:\n  nvcr.io:\n    endpoint: https://x\n": "line 3: mirrors.nvcr.io.endpoint must be a list of URLs",
		"mirrors:\n  nvcr.io:\n    rewrite: [a]\n":        "mirrors.nvcr.io.rewrite must be a map",
		"mirrors:\n  nvcr.io: https://x\n":                "mirrors.nvcr.io must be a map",
		"mirrors:\n  '*':\n":                              "",
		"configs: [a]\n":                                  "configs must be a map",
		"configs:\n  a: b\n":                              "configs.a must be a map",
		"miror: {}\n":                                     "miror is not known here",
		"- a\n":                                           "must be a map with mirrors and configs",
		"a: [":                                            "yaml",
	} {
		err := CheckRegistries([]byte(text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "made-up") {
			t.Errorf("the error shows a credential: %v", err)
		}
	}
}

func TestMergeRegistries(t *testing.T) {
	wish := []byte("mirrors:\n  nvcr.io:\n    endpoint: [\"https://nv.example\"]\n")
	merged, changed, err := MergeRegistries([]byte(goodRegistries), wish, "")
	if err != nil || !changed {
		t.Fatalf("changed %v, error %v", changed, err)
	}
	for _, keep := range []string{"hub/$1", "password: made-up", "insecure_skip_verify: true", "https://nv.example", "https://mirror.lab.example.net"} {
		if !strings.Contains(merged, keep) {
			t.Errorf("lost %q in\n%s", keep, merged)
		}
	}
	again, changed, err := MergeRegistries([]byte(merged), wish, "")
	if err != nil || changed || again != merged {
		t.Errorf("second merge: changed %v, error %v", changed, err)
	}
	if _, _, err := MergeRegistries([]byte(goodRegistries), nil, "https://mirror.example"); err == nil || !strings.Contains(err.Error(), "mirrors.docker.io has other endpoints") {
		t.Errorf("a mirror with other endpoints: %v", err)
	}
}

func TestAnotherLoginIsNamedAndNotShown(t *testing.T) {
	wish := []byte("configs:\n  mirror.lab.example.net:\n    auth: {username: puller, password: hush}\n")
	_, _, err := MergeRegistries([]byte(goodRegistries), wish, "")
	if err == nil || !strings.Contains(err.Error(), "configs.mirror.lab.example.net has another login than wanted (password)") ||
		strings.Contains(err.Error(), "hush") || strings.Contains(err.Error(), "made-up") {
		t.Errorf("%v", err)
	}
	wish = []byte("configs:\n  mirror.lab.example.net:\n    auth: {username: puller, password: made-up}\n")
	if _, changed, err := MergeRegistries([]byte(goodRegistries), wish, ""); err != nil || changed {
		t.Errorf("the same login: changed %v, %v", changed, err)
	}
}

func TestMirrorGolden(t *testing.T) {
	w := serverWant()
	w.ImageMirror = "http://10.0.0.2:5000"
	w.Registries = []byte("configs:\n  10.0.0.2:5000:\n    tls: {ca_file: /etc/ca.pem}\n")
	text, err := w.registries()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "registries.yaml", text)
}

func FuzzRegistries(f *testing.F) {
	f.Add([]byte(goodRegistries))
	f.Add([]byte(brokenRegistries))
	f.Add([]byte("mirrors: &a\n  x: *a\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		merged, changed, err := MergeRegistries(data, nil, "https://m.example")
		if err != nil || !changed {
			return
		}
		var out map[string]any
		if err := yaml.Unmarshal([]byte(merged), &out); err != nil {
			t.Fatalf("merged text is not YAML: %v\n%s", err, merged)
		}
		if err := CheckRegistries([]byte(merged)); err != nil {
			t.Fatalf("merged text is refused: %v\n%s", err, merged)
		}
	})
}
