package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/bootstrap/nvidia"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/charts"
	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/inventory"
	"github.com/gpuctl/gpuctl/internal/kube"
	"github.com/gpuctl/gpuctl/internal/sharing"
	"github.com/gpuctl/gpuctl/internal/smoke"
)

const provenAnnotation = smoke.ProvenAnnotation

func smokeID(machine string) string { return machine + "/smoke" }

// prove tests the GPUs of a node that has not proven those it has now.
func (w wanted) prove(m inventory.Machine, s sight, do doer) []plan.Action {
	reason := unproven(s, m, s.facts[m.Name])
	if reason == "" {
		return nil
	}
	return []plan.Action{w.proof(m, s, reason, do)}
}

// proof is the test of a node's GPUs.
func (w wanted) proof(m inventory.Machine, s sight, reason string, do doer) plan.Action {
	facts, count := s.facts[m.Name], s.gpuCount(m.Name)
	return plan.Action{
		ID: smokeID(m.Name), Machine: m.Name, Title: fmt.Sprintf("prove %s", gpus(count)), Reason: reason,
		Changes: []string{"a test pod takes all free GPUs for some seconds: " + w.set.Smoke.Ref()},
		Needs:   []string{nodeID(m.Name), operatorID}, Timeout: charts.NodeGatesLimit + 30*time.Minute,
		Apply: func(ctx context.Context, say plan.Say) error {
			return w.proveNow(ctx, m, facts, count, do, say)
		},
	}
}

// unproven says why a node's GPUs are to be tested, "" where they are not.
func unproven(s sight, m inventory.Machine, facts host.Facts) string {
	n, joined := s.cluster.state.Node(m.Name)
	if !joined {
		return "its node is new"
	}
	p, ok := proofOf(n)
	switch {
	case n.HasTaint(charts.UnprovenTaint):
		return "its node is unproven"
	case !ok:
		return "its GPUs have never been proven"
	case !sameGPUs(p.UUIDs, facts) || s.foreign(m.Name) && len(p.UUIDs) != s.gpuCount(m.Name):
		return "its GPUs are not those that were proven"
	}
	return ""
}

// sameGPUs compares a proof with what the machine lists; where the driver lists
// nothing there is nothing to compare.
func sameGPUs(proven []string, facts host.Facts) bool {
	var have []string
	for _, g := range facts.SMI.Value.GPUs {
		have = append(have, g.UUID)
	}
	if len(have) == 0 {
		return true
	}
	proven = slices.Clone(proven)
	slices.Sort(proven)
	slices.Sort(have)
	return slices.Equal(proven, have)
}

func proofOf(n kube.Node) (smoke.Proof, bool) {
	text, there := n.Annotations[provenAnnotation]
	if !there {
		return smoke.Proof{}, false
	}
	p, err := smoke.ParseProof(text)
	return p, err == nil
}

// proveNow waits until the node offers its GPUs, tests them, and lets work come
// when they passed: the proof stays on the node, the taint goes.
func (w wanted) proveNow(ctx context.Context, m inventory.Machine, facts host.Facts, count int, do doer, say plan.Say) error {
	client, _, err := do.api.connect(ctx)
	if err != nil {
		return err
	}
	now, err := client.Snapshot(ctx)
	if err != nil {
		return err
	}
	// Whole GPUs come first; a node that is shared already is proven as it is.
	n, _ := now.Node(m.Name)
	shared, _ := sharing.Parse(n.Labels[sharing.ConfigLabel])
	if cut := w.spec(m, facts); cut.Kind == sharing.MIG && n.Labels[sharing.MIGConfigLabel] == cut.MIGConfig() {
		shared = cut
	}
	return whileRefused(ctx, admissionPause, say, func(last bool) error {
		return w.proveOnce(ctx, client, m, facts, shared.Offers(count), do, say, last)
	})
}

// proveOnce is one try; a refusal at admission is on record only where it is the last.
func (w wanted) proveOnce(ctx context.Context, client *kube.Client, m inventory.Machine, facts host.Facts, offers map[string]int64, do doer, say plan.Say, last bool) error {
	if err := w.gates(ctx, client, m.Name, offers, do, say); err != nil {
		return err
	}
	state, err := client.Snapshot(ctx)
	if err != nil {
		return err
	}
	tests := w.listedRemotely(ctx, client, smokeTests(m.Name, facts, state), exporterLimit, say)
	report, err := smoke.Run(ctx, client.Interface(), tests, w.smokeOptions(),
		func(_, format string, args ...any) { say(format, args...) })
	if err == nil {
		err = settleProof(ctx, client, m.Name, report)
	}
	if last || !refusedAtAdmission(err) {
		do.smoke.add(report)
	}
	return err
}

func smokeNode(name string, facts host.Facts, state kube.State) smoke.Node {
	n, _ := state.Node(name)
	out := smoke.Node{
		Name: name, PCI: smoke.Unknown, Driver: facts.SMI.Value.DriverVersion,
	}
	sharedSmoke(&out, n, state)
	if facts.PCI.Has() {
		out.PCI = len(nvidia.GPUs(facts))
	}
	for _, g := range facts.SMI.Value.GPUs {
		out.Host = append(out.Host, smoke.GPU{UUID: g.UUID, Name: g.Name, Compute: g.Compute})
	}
	return out
}

func (w wanted) smokeOptions() smoke.Options {
	o := smoke.Options{
		Image: w.set.Smoke.Ref(), Programs: w.set.Smoke.VectorAdd, MinDriver: w.set.Smoke.MinDriver, CUDA: w.set.Smoke.CUDA,
		Taints: append([]string{"node-role.kubernetes.io/control-plane", charts.UnprovenTaint}, w.taintKeys()...),
	}
	if w.runtimePath() == charts.RuntimeClass {
		o.RuntimeClass = "nvidia"
	}
	return o
}

// settleProof writes a proof on the node and takes the taint off, or fails.
func settleProof(ctx context.Context, client *kube.Client, node string, report smoke.Report) error {
	proof, passed := report.Proof(node)
	if !passed {
		return &notProven{node, report}
	}
	text, err := proof.Annotation()
	if err != nil {
		return err
	}
	if err := client.SetAnnotations(ctx, node, map[string]string{provenAnnotation: text}); err != nil {
		return err
	}
	return client.RemoveTaint(ctx, node, charts.UnprovenTaint)
}

// notProven is the failure of one node's test.
type notProven struct {
	node   string
	report smoke.Report
}

func (e *notProven) Error() string {
	for _, n := range e.report.Nodes {
		if n.Node == e.node && len(n.Findings) > 0 {
			return string(n.Status) + ": " + n.Findings[0].Evidence
		}
		if n.Node == e.node && n.Status == smoke.Unverified {
			return "the GPUs are unverified: neither the machine itself nor a DCGM exporter lists them"
		}
		if n.Node == e.node {
			return "the GPUs are " + string(n.Status)
		}
	}
	return "the node was not tested"
}

// DiagCode names the entry of the catalogue that explains the failure.
func (e *notProven) DiagCode() diag.Code {
	for _, n := range e.report.Nodes {
		if n.Node == e.node && len(n.Findings) > 0 {
			return diag.Code(n.Findings[0].Code)
		}
	}
	return "smoke-not-proven"
}

// Smoke proves GPUs again: of the named nodes, or of all that have some. Nodes
// that fail get the taint back: no new work comes to GPUs that do not work.
func (e *Engine) Smoke(ctx context.Context, o SmokeOptions) (SmokeResult, error) {
	start := time.Now()
	s, err := e.observe(ctx)
	if err != nil {
		return SmokeResult{}, err
	}
	if !s.cluster.there() {
		return SmokeResult{}, e.noCluster(ctx, s)
	}
	nodes, err := e.smokeNodes(s, o.Nodes)
	if err != nil {
		return SmokeResult{}, err
	}
	client, _, err := e.api.connect(ctx)
	if err != nil {
		return SmokeResult{}, err
	}
	nodes = e.want.listedRemotely(ctx, client, nodes, 0, func(string, ...any) {})
	report, err := smoke.Run(ctx, client.Interface(), nodes, e.want.smokeOptions(), e.tell.smoke)
	result := smokeResult(e.settings.Inventory.Cluster, report)
	result.Seconds = time.Since(start).Seconds()
	if err != nil {
		return result, err
	}
	return result, e.settleSmoke(ctx, client, report)
}

// smokeNodes are the nodes to test; each must have joined.
func (e *Engine) smokeNodes(s sight, names []string) ([]smoke.Node, error) {
	var nodes []smoke.Node
	for _, n := range s.cluster.state.Nodes {
		asked := slices.Contains(names, n.Name)
		if len(names) > 0 && !asked {
			continue
		}
		facts := s.facts[n.Name]
		if !asked && len(nvidia.GPUs(facts)) == 0 && n.Allocatable[gpuResource] == 0 {
			continue
		}
		nodes = append(nodes, smokeTests(n.Name, facts, s.cluster.state)...)
	}
	for _, name := range names {
		if _, joined := s.cluster.state.Node(name); !joined {
			return nil, fmt.Errorf("%s is not a node of the cluster", name)
		}
	}
	if len(nodes) == 0 {
		return nil, errors.New("no node has a GPU: there is nothing to prove")
	}
	return nodes, nil
}

func (e *Engine) settleSmoke(ctx context.Context, client *kube.Client, report smoke.Report) error {
	var failed []string
	var errs []error
	for _, n := range report.Nodes {
		err := settleProof(ctx, client, n.Node, report)
		var not *notProven
		if errors.As(err, &not) {
			failed = append(failed, n.Node)
			if n.Status == smoke.Failed && e.want.taintsUnproven() {
				err = client.SetTaint(ctx, n.Node, unprovenTaint())
			} else {
				err = nil
			}
		}
		errs = append(errs, err)
	}
	if len(failed) > 0 {
		errs = append(errs, &SmokeError{Nodes: failed})
	}
	return errors.Join(errs...)
}
