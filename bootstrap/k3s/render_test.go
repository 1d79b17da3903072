package k3s

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/gpuctl/gpuctl/internal/inventory"
)

var update = flag.Bool("update", false, "rewrite golden files")

func serverWant() Want {
	return Want{
		Machine: "gpu-1", Role: inventory.Server, Version: "v1.36.3+k3s1", Datastore: Etcd,
		SHA256: strings.Repeat("ab", 32), Source: "https://mirror.example/k3s/",
		NodeIP: "10.0.0.10", ExternalIP: "203.0.113.10", Interface: "ens3", Backend: "vxlan",
		TLSSANs: []string{"203.0.113.10", "10.0.0.10"}, Disable: []string{"traefik", "servicelb"},
		Labels: map[string]string{"gpuctl.dev/group": "a100", "node-role.kubernetes.io/gpu": "true"},
	}
}

func agentWant() Want {
	return Want{
		Machine: "gpu-2", Role: inventory.Agent, Version: "v1.36.3+k3s1", ServerURL: "https://10.0.0.10:6443",
		NodeIP: "10.0.0.11", Unproven: true, Taints: []string{"team=ml:NoSchedule"}, DataDir: "/data/k3s",
		Proxy: Proxy{HTTP: "http://proxy.example:3128", HTTPS: "http://proxy.example:3128", No: "example.net,10.0.0.11"},
		Extra: map[string]any{"kubelet-arg": []any{"max-pods=200"}, "debug": true, "resolv-conf": "/etc/r.conf"},
	}
}

func TestFilesGolden(t *testing.T) {
	public := serverWant()
	public.FlannelExternal = true
	public.Backend, public.Datastore, public.Extra = "wireguard-native", SQLite, map[string]any{
		"write-kubeconfig-mode": "0640", "tls-san": "api.example.net", "etcd-snapshot-retention": 7, "flannel-backend": "host-gw",
	}
	old := agentWant()
	old.Version, old.DataDir, old.Proxy = "v1.31.14+k3s1", "", Proxy{}
	second := serverWant()
	second.Machine, second.ServerURL = "gpu-3", "https://10.0.0.10:6443"
	for name, w := range map[string]Want{"server": serverWant(), "server-sqlite": public, "server-joining": second, "agent": agentWant(), "agent-1.31": old} {
		t.Run(name, func(t *testing.T) {
			if errs := w.Check(); len(errs) > 0 {
				t.Fatalf("check: %v", errs)
			}
			var b strings.Builder
			for _, f := range Files(w) {
				b.WriteString("==> " + f.Mode + " " + f.Path + "\n")
				if !strings.HasSuffix(f.Path, ".sh") {
					b.WriteString(f.Content)
				}
			}
			golden(t, name+".txt", b.String())
		})
	}
}

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
		t.Errorf("%s differs, run with -update and look at the diff; got:\n%s", path, got)
	}
}

// TestListsAddUp applies k3s's own merge rules (config.yaml, then drop-ins by
// name, "key+" appends) to a user's files and ours: nothing of the user's is lost.
func TestListsAddUp(t *testing.T) {
	user := `write-kubeconfig-mode: "0644"
tls-san:
  - "api.lab.example.net"
  - 10.0.0.5
node-label:
  - "pool=a100"
kubelet-arg: "root-dir=/data/kubelet"
`
	w := serverWant()
	w.Extra = map[string]any{"kubelet-arg": "max-pods=200"}
	got := mergeLikeK3s(t, user, "disable: traefik\n", Config(w))
	for key, want := range map[string]string{
		"tls-san":               "api.lab.example.net 10.0.0.5 203.0.113.10 10.0.0.10",
		"kubelet-arg":           "root-dir=/data/kubelet max-pods=200",
		"node-label":            "pool=a100 gpuctl.dev/group=a100",
		"disable":               "traefik traefik servicelb",
		"write-kubeconfig-mode": "0644",
		"node-name":             "gpu-1",
	} {
		if s := strings.Join(got[key], " "); s != want {
			t.Errorf("%s = %q, want %q", key, s, want)
		}
	}
}

func mergeLikeK3s(t *testing.T, files ...string) map[string][]string {
	t.Helper()
	merged := map[string][]string{}
	for _, file := range files {
		var m map[string]any
		if err := yaml.Unmarshal([]byte(file), &m); err != nil {
			t.Fatalf("%v in\n%s", err, file)
		}
		for key, v := range m {
			texts, err := scalars(v)
			if err != nil {
				t.Fatal(err)
			}
			if name, more := strings.CutSuffix(key, "+"); more {
				merged[name] = append(merged[name], texts...)
			} else {
				merged[key] = texts
			}
		}
	}
	return merged
}

func TestCheck(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Want)
		want   string
	}{
		"agent without server": {func(w *Want) { w.ServerURL = "" }, "needs the URL of a server"},
		"http":                 {func(w *Want) { w.ServerURL = "http://10.0.0.10:6443" }, "must begin with https"},
		"version":              {func(w *Want) { w.Version = "1.36.3" }, "not of the form"},
		"data at root":         {func(w *Want) { w.DataDir = "/var/lib" }, "folder of its own"},
		"relative data":        {func(w *Want) { w.DataDir = "data/k3s" }, "folder of its own"},
		"quote in proxy":       {func(w *Want) { w.Proxy.HTTP = "http://a'b" }, "must not contain quotes"},
		"server key":           {func(w *Want) { w.Extra = map[string]any{"tls-san": "x"} }, "key for servers"},
		"typo":                 {func(w *Want) { w.Extra = map[string]any{"kubelet-args": "x"} }, "did you mean kubelet-arg?"},
		"nonsense":             {func(w *Want) { w.Extra = map[string]any{"qqqqqqqqq": "x"} }, "is not a k3s key"},
		"reserved":             {func(w *Want) { w.Extra = map[string]any{"token": "x"} }, "set by gpuctl"},
		"nested":               {func(w *Want) { w.Extra = map[string]any{"debug": map[string]any{}} }, "plain value"},
		"list for one":         {func(w *Want) { w.Extra = map[string]any{"snapshotter": []any{"a", "b"}} }, "takes one value"},
		"registries":           {func(w *Want) { w.Registries = []byte("mirrors: x") }, "mirrors must be a map"},
	} {
		t.Run(name, func(t *testing.T) {
			w := agentWant()
			c.change(&w)
			errs := w.Check()
			if len(errs) != 1 || !strings.Contains(errs[0].Error(), c.want) {
				t.Errorf("got %v, want one with %q", errs, c.want)
			}
		})
	}
	w := serverWant()
	w.Extra = map[string]any{"write-kubeconfig-mode": 420}
	if errs := w.Check(); len(errs) != 1 || !strings.Contains(errs[0].Error(), "must be quoted") {
		t.Errorf("unquoted mode: %v", errs)
	}
}

func TestKnownKeys(t *testing.T) {
	for role, keys := range map[inventory.Role][2][]string{
		inventory.Server: {{"cluster-init", "kubelet-arg", "tls-san"}, {"disable-apiserver-lb", "no-deploy"}},
		inventory.Agent:  {{"kubelet-arg", "disable-apiserver-lb"}, {"tls-san", "cluster-init", "agent-token"}},
	} {
		have := " " + strings.Join(KnownKeys(role), " ") + " "
		for _, k := range keys[0] {
			if !strings.Contains(have, " "+k+" ") {
				t.Errorf("%s: %s is missing", role, k)
			}
		}
		for _, k := range keys[1] {
			if strings.Contains(have, " "+k+" ") {
				t.Errorf("%s: %s should not be known", role, k)
			}
		}
	}
}
