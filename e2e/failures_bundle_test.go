//go:build lab && full

package e2e_test

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// speaker leaves secrets wherever a pod can leave any.
const speaker = `
apiVersion: v1
kind: Pod
metadata: {name: speaker, namespace: default, annotations: {note: canary-annotation}}
spec:
  restartPolicy: Never
  containers:
    - name: main
      image: "docker.io/library/busybox:1.36.1"
      env: [{name: KEY, value: canary-environment}]
      command: [sh, -c, "echo canary-log; echo 'login with password=canary-passw0rd, Authorization: Bearer canarybearer0123456789' >/dev/termination-log; exit 1", canary-argument]
      resources: {limits: {nvidia.com/gpu: 1}}
`

// bundle: nothing of what was planted is in a support bundle.
func (c *clinic) bundle(t *testing.T) {
	t.Run("a support bundle holds no secret", func(t *testing.T) {
		c.s.Exec(c.server, manifest(speaker)+"k3s kubectl wait pod speaker --for jsonpath='{.status.phase}'=Failed --timeout 50s >/dev/null")
		defer c.s.Exec(c.server, "k3s kubectl delete pod speaker --wait --timeout 50s >/dev/null")
		file := filepath.Join(c.s.Dir, "support.tar.gz")
		c.doctor(t, "--bundle", file)
		files := unpacked(t, file)
		for _, name := range []string{"report.json", "cluster.json", "machines/" + c.server.Name + ".json", "machines/" + c.agent.Name + ".json", "machines/" + c.agent.Name + ".log"} {
			if len(files["gpuctl-support/"+name]) < 100 {
				t.Errorf("%s is missing or empty", name)
			}
		}
		if !strings.Contains(files["gpuctl-support/cluster.json"], `"speaker"`) {
			t.Error("the pod is not in the bundle: nothing was put to the test")
		}
		for what, canary := range c.canaries() {
			if len(canary) < 3 {
				t.Errorf("no canary for %s: %q", what, canary)
				continue
			}
			for name, text := range files {
				if regexp.MustCompile(`(^|[^A-Za-z0-9])` + regexp.QuoteMeta(canary) + `($|[^A-Za-z0-9])`).MatchString(name + "\n" + text) {
					t.Errorf("%s holds the %s", name, what)
				}
			}
		}
	})
}

// canaries are what must be in no bundle: secrets of the cluster as they are,
// and what speaker says.
func (c *clinic) canaries() map[string]string {
	line := func(script string) string { return strings.TrimSpace(c.s.Exec(c.server, script)) }
	token := line("cat /var/lib/rancher/k3s/server/token")
	_, secret, _ := strings.Cut(token, "::server:")
	return map[string]string{
		"server token": token, "secret of the server token": secret, "agent token": strings.TrimSpace(c.s.Exec(c.agent, "cat /etc/rancher/k3s/gpuctl-agent-token")),
		"user": "ops", "password of sudo": password, "address of the server": c.server.IP, "address of the agent": c.agent.IP,
		"key of the administrator": line("sed -n 's/.*client-key-data: //p' /etc/rancher/k3s/k3s.yaml"),
		"machine id":               line("cat /etc/machine-id"), "environment": "canary-environment", "argument": "canary-argument",
		"annotation": "canary-annotation", "password in a message": "canary-passw0rd", "token in a message": "canarybearer0123456789", "log": "canary-log",
	}
}

func unpacked(t *testing.T, path string) map[string]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zip, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for archive := tar.NewReader(zip); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = string(data)
	}
}
