package containerd

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; got:\n%s", name, got)
	}
}

func settings(agent string) Settings {
	return Settings{
		AgentDir: agent, Address: "/run/k3s/containerd/containerd.sock", State: "/run/k3s/containerd",
		BinDir: "/var/lib/rancher/k3s/data/cni", PauseImage: "rancher/mirrored-pause:3.6",
		Snapshotter: "overlayfs", SystemdCgroup: true,
	}
}

func TestRender(t *testing.T) {
	plain := settings("/var/lib/rancher/k3s/agent")
	nvidia := plain
	nvidia.DefaultRuntime = "nvidia"
	nvidia.Runtimes = []Runtime{{Name: "nvidia", Type: runcShim, Binary: "/usr/bin/nvidia-container-runtime", Options: true}}
	nvidia.Auths = []Auth{{"registry.example", AuthConfig{Username: "u", Password: `p"q`}}}
	for name, s := range map[string]Settings{"plain.toml": plain, "nvidia.toml": nvidia} {
		text, err := s.render()
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name, string(text))
	}
}

func TestTemplateOfTheAdministrator(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "etc/containerd/config-v3.toml.tmpl")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("{{ template \"base\" . }}\n[own]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	text, err := settings(dir).render()
	if err != nil || !strings.HasSuffix(string(text), "[own]\n") || !strings.Contains(string(text), "version = 3") {
		t.Errorf("got %v:\n%s", err, text)
	}
}

func TestDefaultRuntimeHasToBeFound(t *testing.T) {
	for _, name := range []string{"nvidia", "runc"} {
		s := settings(t.TempDir())
		s.DefaultRuntime = name
		if err := s.Write(); err == nil || err.Error() != "default runtime "+name+" was not found" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFindRuntimes(t *testing.T) {
	root := t.TempDir()
	for _, f := range []string{"usr/bin/nvidia-container-runtime", "usr/local/nvidia/toolkit/nvidia-container-runtime",
		"usr/bin/nvidia-container-runtime.cdi", "opt/kwasm/bin/containerd-shim-spin-v2"} {
		path := filepath.Join(root, f)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	found := map[string]string{}
	for _, r := range FindRuntimes(root, "/bin:/usr/bin") {
		found[r.Name] = r.Binary
	}
	want := map[string]string{
		"nvidia":     "/usr/local/nvidia/toolkit/nvidia-container-runtime",
		"nvidia-cdi": "/usr/bin/nvidia-container-runtime.cdi",
		"spin":       "/opt/kwasm/bin/containerd-shim-spin-v2",
	}
	if !maps.Equal(found, want) {
		t.Errorf("found %v, want %v", found, want)
	}
}

const registries = `
mirrors:
  docker.io:
    endpoint: ["http://10.0.0.1:5000"]
    rewrite: {"^(.*)$": "docker.io/$1"}
  "*":
    endpoint: ["https://mirror.example", "https://mirror.example/v2/"]
  empty.example:
  self.example:
    endpoint: ["https://self.example"]
configs:
  mirror.example:
    auth: {username: u, password: p}
    tls: {ca_file: /ca.pem}
  "tls.example:5000":
    tls: {insecure_skip_verify: true}
`

func TestHosts(t *testing.T) {
	r, err := parseRegistries([]byte(registries))
	if err != nil {
		t.Fatal(err)
	}
	hosts := r.hosts(false)
	want := []string{"_default", "docker.io", "mirror.example", "tls.example:5000"}
	if got := slices.Sorted(maps.Keys(hosts)); !slices.Equal(got, want) {
		t.Fatalf("folders %q, want %q", got, want)
	}
	golden(t, "docker.io.toml", hosts["docker.io"])
	golden(t, "default.toml", hosts["_default"])
	golden(t, "tls.toml", hosts["tls.example:5000"])
	if auths := r.Credentials(); len(auths) != 1 || auths[0].Host != "mirror.example" {
		t.Errorf("credentials %+v", auths)
	}
}

func TestWriteHostsLeavesForeignFolders(t *testing.T) {
	agent := t.TempDir()
	foreign := filepath.Join(agent, "etc/containerd/certs.d/own.example/hosts.toml")
	if err := os.MkdirAll(filepath.Dir(foreign), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(foreign, []byte("server = \"x\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := parseRegistries([]byte(registries))
	if err != nil {
		t.Fatal(err)
	}
	made := filepath.Join(agent, "etc/containerd/certs.d/docker.io/hosts.toml")
	if err := WriteHosts(agent, r, false); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(made); err != nil {
		t.Error(err)
	}
	if err := WriteHosts(agent, Registries{}, false); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(made); err == nil {
		t.Error("a generated folder stayed")
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Errorf("a foreign folder went: %v", err)
	}
}

func FuzzParseRegistries(f *testing.F) {
	f.Add(registries)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := parseRegistries([]byte(text))
		if err != nil {
			return
		}
		for name, hosts := range r.hosts(false) {
			if !strings.HasPrefix(hosts, generated) {
				t.Errorf("%s lacks its head line", name)
			}
		}
	})
}
