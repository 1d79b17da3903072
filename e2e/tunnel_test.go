//go:build lab

package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/e2e/lab/machine"
	"github.com/gpuctl/gpuctl/e2e/scene"
)

// TestTunnelAndMarks: a server of which nothing but port 22 is reached and whose
// sshd forbids forwarding. Its API is used through the tunnel; its group's labels
// and taints come and go without a restart of k3s; secrets that the file only
// names arrive and stand nowhere else.
func TestTunnelAndMarks(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "tunnel")
	m := s.Machines(machine.Spec{Name: "a", Reach: machine.ReachSSH, SSHD: []string{"AllowTcpForwarding no"}})[0]
	ca := filepath.Join(s.Dir, "ca.pem")
	if err := os.WriteFile(ca, []byte("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Env = []string{"REGISTRY_PASSWORD=" + password}
	write := func(group map[string]any) {
		group["name"] = "g"
		s.Write(scene.Cluster{
			Members: []scene.Member{{Machine: m, GPUs: -1, More: map[string]any{"group": "g"}}},
			Spec: map[string]any{"groups": []any{group}, "kubernetes": map[string]any{"registries": map[string]any{"configs": map[string]any{
				"reg.example": map[string]any{
					"auth": map[string]any{"username": "bob", "password": map[string]any{"env": "REGISTRY_PASSWORD"}},
					"tls":  map[string]any{"ca_file": map[string]any{"file": ca}},
				},
			}}}},
		})
	}
	write(map[string]any{"labels": map[string]any{"team": "ml", "gone": "soon"}, "taints": []string{"team=ml:PreferNoSchedule"}})
	s.Must(0, "apply", "-v")
	nowhere(t, s.StateDir())
	on := func(script string) string { return s.Exec(m, script) }
	if out := on("grep -c '" + password + "' /etc/rancher/k3s/registries.yaml; stat -c %a /etc/rancher/k3s/registries.yaml /etc/rancher/k3s/gpuctl-registry-*-ca.pem"); out != "1\n600\n600" {
		t.Errorf("the registry's files: %q", out)
	}
	started := on("systemctl show -P ActiveEnterTimestampMonotonic k3s")
	marks := func() string {
		node := s.Nodes()[m.Name]
		out := "team=" + node.Metadata.Labels["team"] + " gone=" + node.Metadata.Labels["gone"]
		for _, taint := range node.Spec.Taints {
			out += " " + taint.Key
		}
		return out
	}
	if got := marks(); got != "team=ml gone=soon team" {
		t.Errorf("the node after the first apply: %s", got)
	}

	write(map[string]any{"labels": map[string]any{"team": "infra"}, "taints": []string{"team=ml:PreferNoSchedule"}})
	s.Must(0, "apply")
	if got := marks(); got != "team=infra gone= team" {
		t.Errorf("the node after other labels: %s", got)
	}
	if now := on("systemctl show -P ActiveEnterTimestampMonotonic k3s"); now != started {
		t.Error("labels restarted k3s")
	}
	var again applied
	if s.Decode(s.Must(0, "apply", "-o", "json"), &again); again.Changed != 0 {
		t.Errorf("a second apply changes %+v", again.Outcomes)
	}

	p := s.Start("kubeconfig", "--tunnel")
	path := filepath.Join(s.StateDir(), "kubeconfig-tunnel")
	s.Until(time.Minute, "the tunnel", func() string {
		if _, err := os.Stat(path); err != nil {
			return err.Error()
		}
		return ""
	})
	for range 3 {
		if names, err := nodeNames(path); err != nil || strings.Join(names, " ") != m.Name {
			t.Errorf("through the tunnel: %v, %v", names, err)
		}
	}
	p.Interrupt()
	s.Expect(0, p.Wait())
	if _, err := nodeNames(path); err == nil {
		t.Error("the tunnel outlives Ctrl-C")
	}
}
