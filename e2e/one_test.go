//go:build lab

package e2e_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/gpuctl/gpuctl/e2e/lab/machine"
	"github.com/gpuctl/gpuctl/e2e/scene"
)

// TestOneMachine is the whole life of the smallest cluster: made, looked at,
// applied again without a change, taken apart without a trace, made again.
func TestOneMachine(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "one")
	m := s.Machines(machine.Spec{Name: "a", GPU: scene.H100(2)})[0]
	s.Write(scene.Cluster{Members: []scene.Member{{Machine: m, GPUs: 2}}})
	bare := traces(s, m)

	s.Must(0, "bootstrap")
	want := map[string]int{m.Name: 2}
	proven(t, s, want)
	kubeconfigWorks(t, s, m.Name)
	first := s.EndState()
	uid := first["node m0 uid"]

	nothingChanges(t, s, first)

	s.Must(0, "reset", "--yes")
	if left := added(bare, traces(s, m)); left != "" {
		t.Errorf("a reset leaves:\n%s", left)
	}

	s.Must(0, "bootstrap")
	proven(t, s, want)
	second := s.EndState()
	if second["node m0 uid"] == uid {
		t.Error("the node after a reset is the one from before")
	}
	if diff := first.Comparable().Diff(second.Comparable()); diff != "" {
		t.Errorf("a cluster made again differs:\n%s", diff)
	}
}

// nothingChanges applies again: no action, no other state, and no more than one
// connection and two commands per machine.
func nothingChanges(t *testing.T, s *scene.Scene, before scene.EndState) {
	t.Helper()
	var again applied
	s.Decode(s.Must(0, "apply", "-o", "json"), &again)
	if again.Changed != 0 || len(again.Outcomes) != 0 {
		t.Errorf("applied again: %d changes, %+v", again.Changed, again.Outcomes)
	}
	if len(again.Traffic) == 0 {
		t.Error("applied again: no traffic is counted")
	}
	for name, traffic := range again.Traffic {
		if traffic.Connections > 1 || traffic.Commands > 2 {
			t.Errorf("applied again: %d connections and %d commands on %s; at most 1 and 2", traffic.Connections, traffic.Commands, name)
		}
	}
	if diff := before.Diff(s.EndState()); diff != "" {
		t.Errorf("applied again, and the state differs:\n%s", diff)
	}
}

// traces are lines about everything k3s could leave on a machine.
func traces(s *scene.Scene, m *machine.Machine) []string {
	return strings.Split(s.Exec(m, `
awk '{print "mount", $2, $3}' /proc/self/mounts
for i in /sys/class/net/*; do echo "interface ${i##*/}"; done
for f in iptables ip6tables; do $f-save 2>/dev/null | awk -v f=$f '/^-A/ {print f, $0} /^:/ && $2 == "-" {print f, "chain", $1}'; done
systemctl list-unit-files --no-legend 'k3s*' | awk '{print "unit", $1}'
for d in /etc/rancher /var/lib/rancher /var/lib/kubelet /var/lib/cni /run/k3s /run/flannel /etc/cni /opt/cni; do
  [ ! -d $d ] || find $d | sed 's/^/file /'
done
find / -xdev \( -path /proc -o -path /sys \) -prune -o \( -name '*k3s*' -o -name '*kubelet*' \) -print | grep -v '^/usr/lib/lab' | sed 's/^/file /'
find /sys/fs/cgroup -path '*kubepods*' -name cgroup.procs | while read -r f; do [ -z "$(cat "$f")" ] || echo "processes in $f"; done
for p in /proc/[0-9]*; do
  exe=$(tr '\0' ' ' <$p/cmdline 2>/dev/null | cut -d' ' -f1)
  case $exe in *k3s* | *containerd* | *kube* | *flannel* | *etcd*) echo "process $exe" ;; esac
done
ip netns list | sed 's/^/netns /'
`), "\n")
}

// added are the lines of after that before does not have.
func added(before, after []string) string {
	had := map[string]bool{}
	for _, line := range before {
		had[line] = true
	}
	var more []string
	for _, line := range after {
		if !had[line] {
			more = append(more, line)
		}
	}
	return strings.Join(more, "\n")
}

// kubeconfigWorks asks the API with the kubeconfig that gpuctl hands out, from
// where the user is.
func kubeconfigWorks(t *testing.T, s *scene.Scene, name string) {
	t.Helper()
	path := filepath.Join(s.Dir, "kubeconfig")
	s.Must(0, "kubeconfig", "--to", path)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the kubeconfig has mode %v, %v; want 0600", info.Mode(), err)
	}
	names, err := nodeNames(path)
	if err != nil || len(names) != 1 || names[0] != name {
		t.Errorf("by the kubeconfig the nodes are %v, %v; want %s", names, err, name)
	}
}

// nodeNames asks an API server for its nodes.
func nodeNames(kubeconfig string) ([]string, error) {
	data, err := os.ReadFile(kubeconfig)
	if err != nil {
		return nil, err
	}
	var c struct {
		Clusters []struct {
			Cluster struct {
				Server string `json:"server"`
				CA     string `json:"certificate-authority-data"`
			} `json:"cluster"`
		} `json:"clusters"`
		Users []struct {
			User struct {
				Cert string `json:"client-certificate-data"`
				Key  string `json:"client-key-data"`
			} `json:"user"`
		} `json:"users"`
	}
	if err := yaml.Unmarshal(data, &c); err != nil {
		return nil, err
	}
	decode := func(s string) []byte {
		b, _ := base64.StdEncoding.DecodeString(s) // what is wrong in it fails below
		return b
	}
	pair, err := tls.X509KeyPair(decode(c.Users[0].User.Cert), decode(c.Users[0].User.Key))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(decode(c.Clusters[0].Cluster.CA))
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}}
	defer transport.CloseIdleConnections()
	client := http.Client{Timeout: 20 * time.Second, Transport: transport}
	resp, err := client.Get(c.Clusters[0].Cluster.Server + "/api/v1/nodes")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var list struct{ Items []scene.Node }
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		return nil, err
	}
	var names []string
	for _, n := range list.Items {
		names = append(names, n.Metadata.Name)
	}
	return names, nil
}
