//go:build lab

package e2e_test

import (
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/gpuctl/gpuctl/e2e/lab/gpu"
	"github.com/gpuctl/gpuctl/e2e/lab/machine"
	"github.com/gpuctl/gpuctl/e2e/lab/mirror"
	"github.com/gpuctl/gpuctl/e2e/scene"
)

// TestGuardedSources: k3s, packages of driver and toolkit, charts and images come
// from a mirror with an authority of its own that wants a login. The machine gets
// everything through it; no argument list, no file that others can read, and no
// record holds the password.
func TestGuardedSources(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "guarded")
	m := s.Machines(machine.Spec{Name: "a", GPU: scenario(t, gpu.NoDriver(1))})[0]
	at, err := url.Parse(s.Lab.Sources()["k3s"])
	if err != nil {
		t.Fatal(err)
	}
	guard, err := mirror.NewGuard(at.Hostname(), at.Host, mirror.Login{User: "bob", Password: password, Token: "token-" + password})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = guard.Close() })
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, guard.CA, 0o600); err != nil {
		t.Fatal(err)
	}
	bob := func(path string) map[string]any {
		return map[string]any{"url": guard.URL + path, "caFile": ca, "username": "bob", "password": map[string]any{"env": "MIRROR_PASSWORD"}}
	}
	token := func(path string) map[string]any {
		return map[string]any{"url": guard.URL + path, "caFile": ca, "token": map[string]any{"env": "MIRROR_TOKEN"}}
	}
	s.Env = []string{"MIRROR_PASSWORD=" + password, "MIRROR_TOKEN=token-" + password}
	s.Write(scene.Cluster{
		Members: []scene.Member{{Machine: m, GPUs: 1}},
		Spec: map[string]any{"sources": map[string]any{
			"k3s": token("/k3s"), "packages": bob("/apt"), "charts": token("/charts"), "images": bob(""),
		}},
	})
	watch(s, m)
	s.Must(0, "apply", "--yes", "-v")
	watched(t, s, m)
	proven(t, s, map[string]int{m.Name: 1})
	driverIs(t, s, m, gpu.Driver, "open")
	for what, word := range map[string]string{"k3s": "/k3s/", "keys": "gpgkey", "package lists": "InRelease", "packages": ".deb", "charts": ".tgz", "images": "/v2/"} {
		if !guard.Served(word) {
			t.Errorf("%s did not come from the guarded mirror", what)
		}
	}
	nowhere(t, s.StateDir())
	if found := s.Exec(m, "su ubuntu -s /bin/sh -c \"grep -rlaE 'ops-secre[t]|b3BzLXNlY3JldA' /etc /var/lib /var/log /run /tmp /usr/local 2>/dev/null || :\""); found != "" {
		t.Errorf("files that every user may read hold the password: %s", found)
	}
	if modes := s.Exec(m, "stat -c %a /etc/apt/auth.conf.d/gpuctl.conf /etc/rancher/k3s/registries.yaml | sort -u"); modes != "600" {
		t.Errorf("modes of files with passwords: %s", modes)
	}
	nothingChanges(t, s, s.EndState())
}
