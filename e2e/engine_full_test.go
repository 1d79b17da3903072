//go:build lab && full

package e2e_test

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/gpuctl/gpuctl/e2e/lab/machine"
	"github.com/gpuctl/gpuctl/e2e/scene"
)

// foreignEngine is a containerd of the machine's own, with a container that works:
// the programs are taken from a k3s that is unpacked beside. $1 is where the mirror
// lies (host:port), $2 the path of the k3s file there.
const foreignEngine = `set -e
curl -fsS -o /root/k3s "http://$1$2"
chmod 755 /root/k3s
K3S_DATA_DIR=/root/unpacked /root/k3s ctr --version >/dev/null
for p in containerd containerd-shim-runc-v2 runc ctr; do
  cp -L /root/unpacked/data/current/bin/$p /usr/bin/$p
done
rm -rf /root/k3s /root/unpacked
mkdir -p /etc/containerd
printf 'version = 3\n# the owner of this machine wrote this\n' >/etc/containerd/config.toml
cat >/etc/systemd/system/containerd.service <<'EOF'
[Service]
Type=notify
ExecStart=/usr/bin/containerd
Delegate=yes
KillMode=process
[Install]
WantedBy=multi-user.target
EOF
systemctl daemon-reload
systemctl enable --now containerd
ctr images pull --plain-http "$1/docker.io/library/busybox:1.36.1" >/dev/null
ctr run -d --null-io "$1/docker.io/library/busybox:1.36.1" works sleep 100000
`

// merged puts the cluster beside another one into the user's own kubeconfig.
func merged(t *testing.T, s *scene.Scene) {
	t.Helper()
	path := filepath.Join(s.Dir, "home", ".kube", "config")
	const other = `# my clusters
apiVersion: v1
kind: Config
current-context: work
clusters: [{name: work, cluster: {server: "https://work.example:6443"}}]
contexts: [{name: work, context: {cluster: work, user: me}}]
users: [{name: me, user: {token: abc}}]
`
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, []byte(other), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.Must(0, "kubeconfig", "--merge")
	read := func() (now struct {
		Current  string `json:"current-context"`
		Contexts []struct{ Name string }
	}) {
		data, err := os.ReadFile(path)
		if err == nil {
			err = yaml.Unmarshal(data, &now)
		}
		if err != nil {
			t.Fatal(err)
		}
		return now
	}
	if got := read(); got.Current != "work" || len(got.Contexts) != 2 || got.Contexts[1].Name != s.Name {
		t.Errorf("after a merge: %+v", got)
	}
	s.Must(0, "kubeconfig", "--merge", "--set-current")
	if got := read(); got.Current != s.Name || len(got.Contexts) != 2 {
		t.Errorf("after another: %+v", got)
	}
}

// TestFullForeignContainerd: a machine runs a containerd of its own with a
// container in it. It is told, not touched: through the making of a cluster and its
// end the engine, its configuration and the container are the same.
func TestFullForeignContainerd(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "foreign")
	m := s.Machines(machine.Spec{Name: "a", GPU: scene.H100(1)})[0]
	at, err := url.Parse(s.Lab.Sources()["k3s"])
	if err != nil {
		t.Fatal(err)
	}
	s.Write(scene.Cluster{Members: []scene.Member{{Machine: m, GPUs: 1}}})
	s.Exec(m, "set -- "+at.Host+" "+at.Path+"/v1.34.4%2Bk3s1/k3s\n"+foreignEngine)
	engine := func() string {
		return s.Exec(m, `systemctl is-active containerd
systemctl show -P ExecMainStartTimestampMonotonic containerd
sha256sum </etc/containerd/config.toml
ctr tasks ls | awk '$1 == "works" { print $2, $3 }'
ls /etc/containerd`)
	}
	before := engine()
	if !strings.HasPrefix(before, "active\n") || !strings.Contains(before, " RUNNING\n") {
		t.Fatalf("the machine's own containerd: %s", before)
	}
	r := s.Must(0, "check", "-v", "--no-pairs")
	mentions(t, "a look at the machine", r.Stdout+r.Stderr, "second-container-engine", "the cluster uses k3s's own")
	s.Must(0, "bootstrap")
	proven(t, s, map[string]int{m.Name: 1})
	if pods := s.Exec(m, "ctr containers ls -q; ctr -n k8s.io containers ls -q"); pods != "works" {
		t.Errorf("containers of the machine's own containerd: %s", pods)
	}
	if after := engine(); after != before {
		t.Errorf("the cluster changed the machine's own containerd:\n%s\nbefore\n%s", after, before)
	}
	nothingChanges(t, s, s.EndState())
	merged(t, s)
	s.Must(0, "reset", "--yes")
	if after := engine(); after != before {
		t.Errorf("the cluster's end changed the machine's own containerd:\n%s\nbefore\n%s", after, before)
	}
}
