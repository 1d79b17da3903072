package bootstrap

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/bootstrap/k3s"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/charts"
	"github.com/gpuctl/gpuctl/internal/config"
	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/kube"
)

// clusterWith is a server and an agent of group "gpus", with more of a spec.
func clusterWith(t *testing.T, spec string) wanted {
	t.Helper()
	text := "apiVersion: gpuctl.dev/v1alpha1\nkind: Cluster\nmetadata: {name: test}\nspec:\n  machines:\n" +
		"  - {name: server-1, host: 203.0.113.1, role: server}\n  - {name: gpu-1, host: 203.0.113.2, group: gpus}\n" + spec
	c, err := config.Parse([]byte(text), "gpuctl.yaml")
	if err != nil {
		t.Fatal(err)
	}
	set, err := charts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	return wanted{config: c, set: set, machines: c.Inventory().Machines, key: "key", owner: "me"}
}

const marked = `  groups: [{name: gpus, labels: {team: ml, example.com/zone: a}, taints: ["team=ml:NoSchedule"]}]
`

func TestLabelsAndTaintsOfNodes(t *testing.T) {
	w := clusterWith(t, marked)
	b := w.contents(sightOf(w, 0, 1), pure())
	if !slices.ContainsFunc(ofScope(b.actions, "gpu-1"), hasID("gpu-1/labels")) || slices.ContainsFunc(b.actions, hasID("server-1/labels")) {
		t.Errorf("new machines:\n%s", render(b))
	}
	want := w.k3s(w.machines[1], sightOf(w, 0, 1), b.network)
	if !strings.Contains(k3s.Config(want), "node-taint+:\n  - \"team=ml:NoSchedule\"\n  - \"gpuctl.dev/unproven=:NoSchedule\"") {
		t.Errorf("a node must register with its taints:\n%s", k3s.Config(want))
	}
	rel, _ := w.operator(sight{})
	if text := charts.OperatorValues(charts.Want{Taints: w.taintKeys()}); len(text) == 0 || rel.Values == nil || !slices.Contains(w.smokeOptions().Taints, "team") {
		t.Error("the operator and the smoke test must tolerate the taint")
	}

	s := settledSight(t, w, 0, 1)
	n := &s.cluster.state.Nodes[1]
	n.Labels = map[string]string{"team": "ml", "example.com/zone": "b", "other": "stays"}
	n.Taints = []corev1.Taint{{Key: "old", Effect: corev1.TaintEffectNoSchedule}, {Key: "theirs", Effect: corev1.TaintEffectNoSchedule}}
	n.Annotations[labelsAnnotation], n.Annotations[taintsAnnotation] = "gone,team", "old"
	b = w.contents(s, pure())
	if len(b.actions) != 1 || b.actions[0].ID != "gpu-1/labels" {
		t.Fatalf("drift:\n%s", render(b))
	}
	golden(t, "labels-drift", render(book{actions: b.actions}))
	d := marksOf(w.config.Group("gpus"), *n)
	if len(d.dropLabels) != 1 || d.dropLabels[0] != "gone" || len(d.dropTaints) != 1 || d.dropTaints[0] != "old" || d.labels["example.com/zone"] != "a" {
		t.Errorf("%+v", d)
	}

	n.Labels["example.com/zone"] = "a"
	n.Taints = []corev1.Taint{{Key: "team", Value: "ml", Effect: corev1.TaintEffectNoSchedule}, {Key: "theirs", Effect: corev1.TaintEffectNoSchedule}}
	n.Annotations[labelsAnnotation], n.Annotations[taintsAnnotation] = "example.com/zone,team", "team"
	if b = w.contents(s, pure()); len(b.actions) > 0 {
		t.Errorf("as wanted:\n%s", render(b))
	}
	// Without a group nothing of the node is touched but what gpuctl had set.
	if d := marksOf(config.Group{}, kube.Node{Labels: map[string]string{"a": "b"}}); len(d.reasons) > 0 {
		t.Errorf("a stranger's label: %+v", d)
	}
}

const passedOn = `  proxy: {http: "http://10.0.0.9:3128", https: "http://10.0.0.9:3128", no: "10.0.0.0/8"}
  gpu: {operator: {values: {driver: {licensing: {secret: {env: GPUCTL_TEST_B}}}}}}
  kubernetes:
    config: {server: {etcd-s3-secret-key: {env: GPUCTL_TEST_A}}}
    registries:
      mirrors: {docker.io: {endpoint: ["https://reg.example:5000"]}}
      configs:
        reg.example:5000: {auth: {username: bob, password: {env: GPUCTL_TEST_B}}, tls: {ca_file: {file: CA}, key_file: /etc/keys/own.pem}}
`

// TestSecretsReachTheMachinesAndNoPlan resolves references and looks where they end up.
func TestSecretsReachTheMachinesAndNoPlan(t *testing.T) {
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, []byte("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := clusterWith(t, "  groups: [{name: gpus}]\n"+strings.ReplaceAll(passedOn, "CA}", ca+"}"))
	var told []string
	e := &Engine{want: w, settings: Settings{Secret: func(s string) { told = append(told, s) }, Read: readPlace}, fleet: newFleet(nil, nil, nil)}
	var invalid *config.InvalidError
	if err := e.resolve(); !errors.As(err, &invalid) || len(invalid.Problems) != 3 {
		t.Fatalf("without the variables: %v", err)
	}
	if b := e.plan(sightOf(w, 0, 1), pure()); slices.ContainsFunc(b.findings, func(f diag.Finding) bool { return f.Code == "k3s-config-invalid" }) {
		t.Errorf("who only looks needs no secrets:\n%s", render(b))
	}
	t.Setenv("GPUCTL_TEST_A", "s3-hush")
	t.Setenv("GPUCTL_TEST_B", "reg-hush")
	told = nil
	if err := e.resolve(); err != nil {
		t.Fatal(err)
	}
	if len(told) != 3 { // one of them is named twice
		t.Errorf("told %d secrets", len(told))
	}
	w = e.want
	s := sightOf(w, 0, 1)
	b := w.contents(s, pure())
	out := render(b)
	for _, a := range b.actions {
		out += strings.Join(a.Changes, "\n") + a.Reason + a.Title
	}
	if strings.Contains(out, "hush") || strings.Contains(out, "MIIB") {
		t.Errorf("a plan holds a secret:\n%s", out)
	}
	want := w.k3s(w.machines[0], s, b.network)
	if !strings.Contains(k3s.Config(want), `etcd-s3-secret-key: "s3-hush"`) || !strings.Contains(string(want.Registries), "password: reg-hush") {
		t.Errorf("a secret does not arrive:\n%s\n%s", k3s.Config(want), want.Registries)
	}
	if len(want.Beside) != 1 || want.Beside[0].Mode != "0600" || !strings.HasSuffix(want.Beside[0].Content, "END CERTIFICATE-----\n") ||
		!strings.Contains(string(want.Registries), "ca_file: "+want.Beside[0].Path) || !strings.Contains(string(want.Registries), "key_file: /etc/keys/own.pem") {
		t.Errorf("the CA: %+v\n%s", want.Beside, want.Registries)
	}
	if !slices.Contains(k3s.Paths(want), want.Beside[0].Path) || !slices.Contains(w.probe(w.machines[0]).Files, want.Beside[0].Path) {
		t.Error("the probe does not look at the CA")
	}
	for _, f := range k3s.Files(want) {
		if strings.HasSuffix(f.Path, ".service.env") && !strings.Contains(f.Content, "HTTPS_PROXY='http://10.0.0.9:3128'") {
			t.Errorf("the proxy of k3s:\n%s", f.Content)
		}
	}
}

const letIn = `  groups: [{name: gpus}]
  proxy: {http: "http://10.0.0.9:3128", username: bob, password: {env: GPUCTL_TEST_P}}
  sources:
    k3s: {url: "https://m.example/k3s", token: {env: GPUCTL_TEST_T}}
    packages: {url: "https://m.example/apt", username: bob, password: {env: GPUCTL_TEST_P}}
    charts: {url: "oci://m.example/charts", username: bob, password: {env: GPUCTL_TEST_P}}
    images: {url: "https://m.example:5000", username: bob, password: {env: GPUCTL_TEST_P}}
  kubernetes: {registries: {configs: {other: {auth: {username: x, password: {env: GPUCTL_TEST_T}}}}}}
`

// TestSourcesLetIn: what it takes to be let into mirrors arrives, and stands in no plan.
func TestSourcesLetIn(t *testing.T) {
	t.Setenv("GPUCTL_TEST_P", "p-hush")
	t.Setenv("GPUCTL_TEST_T", "t-hush")
	told := map[string]bool{}
	e := &Engine{
		want:     clusterWith(t, letIn),
		settings: Settings{Secret: func(s string) { told[s] = true }, Read: readPlace}, fleet: newFleet(nil, nil, nil),
	}
	if err := e.resolve(); err != nil {
		t.Fatal(err)
	}
	w := e.want
	s := sightOf(w, 0, 1)
	gpu := s.facts["gpu-1"]
	gpu.Files = host.Known(map[string]host.File{})
	s.facts["gpu-1"] = gpu
	b := w.contents(s, pure())
	out := render(b)
	for _, a := range b.actions {
		out += strings.Join(a.Changes, "\n")
	}
	if strings.Contains(out, "hush") || !slices.ContainsFunc(b.actions, hasID("gpu-1/apt-access")) {
		t.Errorf("the plan:\n%s", out)
	}
	for _, secret := range []string{"p-hush", "t-hush", "Ym9iOnAtaHVzaA==", "http://bob:p-hush@10.0.0.9:3128"} {
		if !told[secret] {
			t.Errorf("%s is not masked", secret)
		}
	}
	want := w.k3s(w.machines[0], s, b.network)
	for _, part := range []string{"m.example:5000:", "password: p-hush", "other:", "password: t-hush"} {
		if !strings.Contains(string(want.Registries), part) {
			t.Errorf("%q is not in registries.yaml:\n%s", part, want.Registries)
		}
	}
	if want.Mirror.Token != "t-hush" || want.Proxy.HTTP != "http://bob:p-hush@10.0.0.9:3128" {
		t.Errorf("%+v, %+v", want.Mirror, want.Proxy)
	}
	if env := *e.fleet.env.Load(); env["http_proxy"] != want.Proxy.HTTP {
		t.Errorf("downloads: %v", env)
	}
	if rel, _ := w.operator(s); rel.Chart.Repository != "oci://m.example/charts" {
		t.Errorf("charts come from %s", rel.Chart.Repository)
	}
}

func TestRegistriesRefusesWhatIsNoCertificate(t *testing.T) {
	w := clusterWith(t, "  groups: [{name: gpus}]\n  kubernetes: {registries: {configs: {r: {tls: {ca_file: certs/ca.pem}}}}}\n")
	e := &Engine{want: w, settings: Settings{Secret: func(string) {}, Read: readPlace}, fleet: newFleet(nil, nil, nil)}
	if err := e.resolve(); err == nil || !strings.Contains(err.Error(), "ca_file is neither a path on the machines nor PEM") {
		t.Errorf("%v", err)
	}
}

// readPlace reads a secret where it is, whatever it is for.
func readPlace(s config.Secret, _ string) (string, error) { return s.Read() }

// envHost keeps the variables of the last command.
type envHost struct {
	remote.Host
	env map[string]string
}

func (h *envHost) Run(_ context.Context, c remote.Cmd) (remote.Result, error) {
	h.env = c.Env
	return remote.Result{}, nil
}

func TestDownloadsGoThroughTheProxy(t *testing.T) {
	w := clusterWith(t, "  groups: [{name: gpus}]\n")
	h := &envHost{}
	f := newFleet(w.machines, nil, nil)
	f.setEnv(downloadEnv(config.Proxy{HTTP: "http://p:1", No: "10.0.0.0/8"}))
	m := f.on("gpu-1")
	m.host = h
	if _, err := m.Run(t.Context(), remote.Cmd{Env: map[string]string{"TOKEN": "x"}}); err != nil {
		t.Fatal(err)
	}
	if h.env["http_proxy"] != "http://p:1" || h.env["no_proxy"] != "localhost,127.0.0.1,10.0.0.0/8" || h.env["TOKEN"] != "x" || h.env["https_proxy"] != "" {
		t.Errorf("%v", h.env)
	}
	if got := downloadEnv(config.Proxy{}); got != nil {
		t.Errorf("without a proxy: %v", got)
	}
}

// A machine that was stopped may come back with another address: k3s is told.
func TestAChangedAddressIsHealed(t *testing.T) {
	w := clusterOf(t, "server-1", "gpu-1")
	s := settledSight(t, w, 0, 1)
	f := s.facts["gpu-1"]
	f.Network.Value.Interfaces = slices.Clone(f.Network.Value.Interfaces)
	f.Network.Value.Interfaces[0] = iface("eth0", "10.0.0.77/24")
	s.facts["gpu-1"] = f
	b := w.contents(s, pure())
	if len(b.actions) != 1 || b.actions[0].ID != "gpu-1/k3s" || !strings.Contains(b.actions[0].Reason, k3s.OwnConfig+" differs") {
		t.Errorf("pending:\n%s", render(b))
	}
	if want := w.k3s(w.machines[1], s, b.network); !strings.Contains(k3s.Config(want), `node-ip: "10.0.0.77"`) {
		t.Errorf("%s", k3s.Config(want))
	}
	// The server's own address is also the one that agents join.
	s = settledSight(t, w, 0, 1)
	f = s.facts["server-1"]
	f.Network.Value.Interfaces = slices.Clone(f.Network.Value.Interfaces)
	f.Network.Value.Interfaces[0] = iface("eth0", "10.0.0.99/24")
	s.facts["server-1"] = f
	b = w.contents(s, pure())
	var ids []string
	for _, a := range b.actions {
		ids = append(ids, a.ID)
	}
	if strings.Join(ids, " ") != "server-1/k3s gpu-1/k3s" {
		t.Errorf("pending:\n%s", render(b))
	}
}

func hasID(id string) func(plan.Action) bool { return func(a plan.Action) bool { return a.ID == id } }
