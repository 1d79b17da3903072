package bootstrap

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/charts"
	"github.com/gpuctl/gpuctl/internal/config"
	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/kube"
)

// existingOf is a wish on a cluster that gpuctl did not make.
func existingOf(t *testing.T, spec string) wanted {
	t.Helper()
	set, err := charts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Parse([]byte("apiVersion: gpuctl.dev/v1alpha1\nkind: Cluster\nmetadata: {name: test}\nspec:\n"+spec), "gpuctl.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return wanted{config: c, set: set, machines: c.Inventory().Machines, key: "key", owner: "me"}
}

const byKubeconfig = "  kubernetes: {existing: {kubeconfig: kc}}\n"

// existingSight is an API with two nodes, one of them with GPUs, and no operator.
func existingSight(version string, gpus int64) sight {
	s := sight{facts: map[string]host.Facts{}, unreached: map[string]error{}}
	s.cluster = clusterSight{at: time.Now(), release: charts.State{Phase: charts.Absent}}
	s.cluster.state = kube.State{Version: version, Nodes: []kube.Node{{Name: "control", Ready: true, Server: true}, {Name: "gpu-1", Ready: true}}}
	if gpus > 0 {
		n := &s.cluster.state.Nodes[1]
		n.Capacity = map[string]int64{gpuResource: gpus}
		n.Allocatable = n.Capacity
	}
	return s
}

func idsOf(actions []plan.Action) string {
	var ids []string
	for _, a := range actions {
		ids = append(ids, a.ID)
	}
	return strings.Join(ids, " ")
}

func codesOf(found []diag.Finding) string {
	var codes []string
	for _, f := range found {
		codes = append(codes, string(f.Code))
	}
	return strings.Join(codes, " ")
}

func TestPlanOfAnExistingClusterWithoutMachines(t *testing.T) {
	w := existingOf(t, byKubeconfig)
	bare := w.contents(existingSight("v1.36.1", 0), pure())
	golden(t, "existing-bare", render(bare))

	s := existingSight("v1.36.1", 2)
	rel, _ := w.operator(s)
	hash, err := charts.HashValues(rel.Values)
	if err != nil {
		t.Fatal(err)
	}
	s.cluster.release = charts.State{Phase: charts.Deployed, Owner: "me", Version: rel.Chart.Version, ValuesHash: hash}
	s.cluster.state.Policy = kube.Policy{Exists: true, State: "ready", Reason: "Reconciled"}
	b := w.contents(s, pure())
	if got := idsOf(b.actions); got != "gpu-1/smoke" || b.actions[0].Machine != "" || !isProof(b.actions[0]) {
		t.Errorf("only the proof is missing: %s", render(b))
	}
	w.only = []string{"control"}
	if b = w.contents(s, pure()); len(b.actions) > 0 {
		t.Errorf("gpu-1 was not chosen: %s", render(b))
	}
}

// An operator that somebody else installed under a generated name: it is kept,
// and the one thing that is asked for is what changes, with no secret shown.
func TestPlanKeepsAnOperatorOfSomebodyElse(t *testing.T) {
	theirs := map[string]any{"driver": map[string]any{"enabled": true}, "proxyPassword": "hunter2",
		"devicePlugin": map[string]any{"config": map[string]any{"name": "theirs"}}}
	hash, err := charts.HashValues(theirs)
	if err != nil {
		t.Fatal(err)
	}
	s := existingSight("v1.31.4", 2)
	s.cluster.release = charts.State{Phase: charts.Absent, Foreign: []charts.Foreign{{Namespace: "nvidia", Name: "gpu-operator-1737000001", Version: "v24.9.1", Status: "deployed"}},
		Other: &charts.State{Phase: charts.Deployed, Status: "deployed", Revision: 1, Version: "v24.9.1", ValuesHash: hash, Values: theirs, LastGood: 1, GoodVersion: "v24.9.1", GoodValues: theirs}}
	s.cluster.state.Policy = kube.Policy{Exists: true, Name: "cluster-policy", Namespace: "nvidia", State: "ready", Reason: "Reconciled"}

	w := existingOf(t, byKubeconfig)
	b := w.contents(s, pure())
	if got := idsOf(b.actions); got != "gpu-1/smoke" || codesOf(b.findings) != "operator-adopted" {
		t.Errorf("nothing of it changes, and its versions are nobody's business:\n%s", render(b))
	}
	shared := existingOf(t, "  kubernetes: {existing: {kubeconfig: kc, group: g}}\n  groups: [{name: g, sharing: {timeSlicing: {replicas: 4}}}]\n")
	b = shared.contents(s, pure())
	golden(t, "existing-adopted", render(b))
	if strings.Contains(render(b), "hunter2") {
		t.Error("a secret of the release is shown")
	}
	if got := shared.operatorNamespace(s.cluster.state); got != "nvidia" {
		t.Errorf("its plugin is restarted in %s", got)
	}

	moved := existingOf(t, byKubeconfig+"  gpu: {operator: {version: v26.7.0}}\n")
	b = moved.contents(s, pure())
	if !strings.Contains(codesOf(b.findings), "version-pair-untested") || strings.Contains(idsOf(b.actions), operatorID) {
		t.Errorf("v26.7.0 was not tested with Kubernetes 1.31:\n%s", render(b))
	}
	moved.force = true
	b = moved.contents(s, pure())
	if diag.AnyBlocks(b.findings) || b.actions[0].Title != "move GPU Operator v24.9.1 -> v26.7.0" {
		t.Errorf("forced:\n%s", render(b))
	}
}

func TestPlanNeverInstallsASecondOperator(t *testing.T) {
	w := existingOf(t, byKubeconfig)
	s := existingSight("v1.36.1", 2)
	s.cluster.state.Policy = kube.Policy{Exists: true, Name: "cluster-policy", State: "ready", Reason: "Reconciled"}
	b := w.contents(s, pure())
	if codesOf(b.findings) != "operator-not-helm" || idsOf(b.actions) != "gpu-1/smoke" {
		t.Errorf("an operator without Helm:\n%s", render(b))
	}
	s.cluster.release.Foreign = []charts.Foreign{{Name: "a"}, {Name: "b"}}
	if b = w.contents(s, pure()); codesOf(b.findings) != "operator-foreign" || idsOf(b.actions) != "gpu-1/smoke" {
		t.Errorf("two releases:\n%s", render(b))
	}
	own := clusterOf(t, "server-1", "gpu-1")
	mine := settledSight(t, own, 0, 2)
	mine.cluster.release = charts.State{Phase: charts.Absent}
	if b = own.contents(mine, pure()); !strings.Contains(codesOf(b.findings), "operator-not-helm") || len(b.actions) > 0 {
		t.Errorf("nor on a cluster of gpuctl's:\n%s", render(b))
	}
}

const joining = "  kubernetes: {existing: {kubeconfig: kc, server: 'https://10.0.0.9:6443/', token: {env: T}}}\n  machines: [{name: gpu-2, host: 203.0.113.2}]\n"

func TestPlanJoinsMachinesToAnExistingCluster(t *testing.T) {
	w := existingOf(t, joining)
	w.apiVersion, w.token = "v1.35.7+k3s1", "K10"+strings.Repeat("a", 64)+"::node:secret"
	s := existingSight("v1.35.7+k3s1", 0)
	s.facts["gpu-2"] = fresh(2, 2)
	b := w.contents(s, pure())
	golden(t, "existing-join", render(b))
	if strings.Contains(render(b), "::node:secret") {
		t.Error("the token is shown")
	}
	if want := w.k3s(w.machines[0], s, b.network); want.ServerURL != "https://10.0.0.9:6443" || want.Version != "v1.35.7+k3s1" || want.Unproven {
		t.Errorf("joins %s with %s, unproven %v", want.ServerURL, want.Version, want.Unproven)
	}

	blind := existingOf(t, strings.Replace(joining, "kubeconfig: kc, ", "", 1))
	s.cluster.state = kube.State{NoAPI: blind.noServer()}
	b = blind.contents(s, pure())
	ids := idsOf(b.actions)
	if !strings.Contains(codesOf(b.findings), "cluster-unseen") || !strings.Contains(ids, "gpu-2/k3s") || strings.Contains(ids, "/node") || strings.Contains(ids, "/smoke") {
		t.Errorf("without its API:\n%s", render(b))
	}
	var invalid *config.InvalidError
	if !errors.As(blind.noExistingAPI(s), &invalid) || blind.existingUnreached(s) != nil {
		t.Error("what needs the API must name the missing kubeconfig, and a join needs none")
	}

	s = existingSight("v1.36.1", 0)
	s.facts["gpu-2"] = fresh(2, 2)
	if b = w.contents(s, pure()); !strings.Contains(codesOf(b.findings), "existing-not-k3s") || len(b.actions) > 0 {
		t.Errorf("a k3s agent joins no other Kubernetes:\n%s", render(b))
	}
}

func TestAnExistingClusterThatDoesNotAnswerStopsTheRun(t *testing.T) {
	w := existingOf(t, joining)
	s := existingSight("", 0)
	s.cluster.state = kube.State{NoAPI: "connection refused"}
	s.facts["gpu-2"] = fresh(2, 2)
	b := w.contents(s, pure())
	var api *APIError
	if len(b.actions) > 0 || !b.out[""] || !errors.As(w.existingUnreached(s), &api) || api.Reason != "connection refused" {
		t.Errorf("got %v\n%s", w.existingUnreached(s), render(b))
	}
}

func TestUnprovenNodesOfOthersAreClosedOnlyWhenAsked(t *testing.T) {
	w := existingOf(t, "  kubernetes: {existing: {kubeconfig: kc, taintUnproven: true}}\n")
	s := existingSight("v1.36.1", 2)
	s.cluster.state.Policy = kube.Policy{Exists: true, State: "ready", Reason: "Reconciled"}
	b := w.contents(s, pure())
	if idsOf(b.actions) != "gpu-1/taint gpu-1/smoke" || !slices.Contains(b.actions[1].Needs, "gpu-1/taint") {
		t.Errorf("asked:\n%s", render(b))
	}
	if asked := w.askedOfTheirs(s); !slices.Contains(asked.Taints, charts.UnprovenTaint) {
		t.Error("an operator that is kept must tolerate the taint")
	}
	if plain := existingOf(t, byKubeconfig); plain.taintsUnproven() || len(plain.askedOfTheirs(s).Taints) > 0 {
		t.Error("nobody asked")
	}
}

func TestJoinTokenIsOfTheFullForm(t *testing.T) {
	full := "K10" + strings.Repeat("0", 64) + "::node:secret"
	for text, ok := range map[string]bool{full: true, "secret": false, "abcdef.0123456789abcdef": false, "": false} {
		t.Setenv("T", text)
		got, err := existingOf(t, joining).joinToken()
		if ok && got != full || ok != (err == nil) {
			t.Errorf("%q: got %q, %v", text, got, err)
		}
		if err != nil && text != "" && strings.Contains(err.Error(), text+" ") {
			t.Errorf("the error shows the token: %v", err)
		}
	}
	if got, err := existingOf(t, byKubeconfig).joinToken(); got != "" || err != nil {
		t.Errorf("nothing joins: %q, %v", got, err)
	}
}

// TestASelectorPicksNodes: by all of its labels, past what sharing adds to the product's name.
func TestASelectorPicksNodes(t *testing.T) {
	w := existingOf(t, `  kubernetes: {existing: {kubeconfig: kc, group: rest}}
  groups:
    - {name: h100, selector: {nvidia.com/gpu.product: NVIDIA-H100-PCIe, zone: a}, sharing: {timeSlicing: 2}}
    - {name: rest}
`)
	node := func(labels ...string) kube.Node {
		n := kube.Node{Labels: map[string]string{}}
		for i := 0; i < len(labels); i += 2 {
			n.Labels[labels[i]] = labels[i+1]
		}
		return n
	}
	const product = "nvidia.com/gpu.product"
	for want, nodes := range map[string][]kube.Node{
		"h100": {node(product, "NVIDIA-H100-PCIe", "zone", "a"), node(product, "NVIDIA-H100-PCIe-SHARED", "zone", "a"), node(product, "NVIDIA-H100-PCIe-MIG-1g.10gb", "zone", "a")},
		"rest": {node(), node(product, "NVIDIA-H100-PCIe"), node(product, "NVIDIA-H100-NVL", "zone", "a"), node(product, "NVIDIA-H100-PCIe", "zone", "b")},
	} {
		for _, n := range nodes {
			if got := w.groupByLabels(n); got != want {
				t.Errorf("%v: group %q, want %q", n.Labels, got, want)
			}
		}
	}
	s := existingSight("v1.36.1", 2)
	n := &s.cluster.state.Nodes[1]
	n.Labels = map[string]string{product: "NVIDIA-H100-PCIe", "zone": "a"}
	if got := w.foreignNodes(s); len(got) != 1 || got[0].Group != "h100" {
		t.Errorf("%+v", got)
	}
}
