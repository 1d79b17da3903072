package bootstrap

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/k3s"
	"github.com/gpuctl/gpuctl/bootstrap/nvidia"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/charts"
	"github.com/gpuctl/gpuctl/internal/config"
	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/inventory"
	"github.com/gpuctl/gpuctl/internal/kube"
	"github.com/gpuctl/gpuctl/internal/sharing"
)

// A cluster that gpuctl did not make has two ways in, and each works without the
// other: a kubeconfig to its API, which is dialled as kubectl would, and the URL
// of a k3s server with a token, by which machines join over SSH.

// existing is that cluster, nil for one of gpuctl's own.
func (w wanted) existing() *config.Existing { return w.config.Spec.Kubernetes.Existing }

// blind says that nothing leads to the API of an existing cluster.
func (w wanted) blind() bool { e := w.existing(); return e != nil && e.Kubeconfig == "" }

// taintsUnproven says whether nodes are closed to work until their GPUs are
// proven: gpuctl's own are, other people's only where they ask for it.
func (w wanted) taintsUnproven() bool { e := w.existing(); return e == nil || e.TaintUnproven }

// noServer is why there is no API, before anybody has looked for one.
func (w wanted) noServer() string {
	switch {
	case w.blind():
		return "no kubeconfig of it is given (kubernetes.existing.kubeconfig)"
	case w.existing() != nil:
		return "it has not been asked yet"
	}
	return "k3s does not run on " + strings.Join(w.serverNames(), ", ")
}

// APIError says that the API of an existing cluster was not reached, or refused.
type APIError struct{ Reason string }

func (e *APIError) Error() string { return "asking the cluster: " + e.Reason }

// noExistingAPI is why an existing cluster could not be asked: an *APIError, or
// a *config.InvalidError where nothing leads to it.
func (w wanted) noExistingAPI(s sight) error {
	if w.blind() {
		return &config.InvalidError{Problems: []config.Problem{{Field: "spec.kubernetes.existing.kubeconfig", Message: "is missing, and this needs the cluster's API"}}}
	}
	return &APIError{Reason: s.cluster.state.NoAPI}
}

// existingUnreached is the error of a run whose existing cluster did not answer.
func (w wanted) existingUnreached(s sight) error {
	if w.existing() == nil || w.blind() || s.cluster.there() || s.cluster.at.IsZero() {
		return nil
	}
	return w.noExistingAPI(s)
}

// existing are the credentials of a cluster that gpuctl did not make.
func (a *api) existing(e config.Existing) (k3s.Credentials, error) {
	token := a.engine.want.token
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known == nil {
		a.known = &k3s.Credentials{}
		if e.Kubeconfig != "" {
			if _, err := os.Stat(e.Kubeconfig); err != nil {
				a.known = nil // client-go passes over a file that is not there
				return k3s.Credentials{}, fmt.Errorf("kubernetes.existing.kubeconfig: %w", err)
			}
			data, err := kube.LoadFiles([]string{e.Kubeconfig}, e.Context)
			if err != nil {
				a.known = nil
				return k3s.Credentials{}, fmt.Errorf("kubernetes.existing.kubeconfig: %w", err)
			}
			for _, secret := range kube.Secrets(data) {
				a.engine.settings.Secret(secret)
			}
			a.known.Kubeconfig = data
		}
	}
	return k3s.Credentials{Kubeconfig: a.known.Kubeconfig, AgentToken: token, ServerToken: token}, nil
}

// joinToken fetches the token by which machines join an existing cluster, "" where none do.
func (w wanted) joinToken() (string, error) {
	e := w.existing()
	if e == nil || e.Token == nil || len(w.machines) == 0 {
		return "", nil
	}
	text, err := e.Token.Read()
	if err == nil && !k3s.FullToken(text) {
		// A short token would let whoever answers at the URL pass for the cluster.
		err = fmt.Errorf("is not of the full form K10<hash of the CA>::node:<secret>; it is in agent-token or node-token below /var/lib/rancher/k3s/server, on a server")
	}
	if err != nil {
		return "", &config.InvalidError{Problems: []config.Problem{{Field: "spec.kubernetes.existing.token", Message: err.Error()}}}
	}
	return text, nil
}

// observeExisting looks at an existing cluster before its machines: which k3s
// they get depends on it.
func (e *Engine) observeExisting(ctx context.Context, s *sight) {
	if e.want.existing() == nil {
		return
	}
	e.observeCluster(ctx, s)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.want.apiVersion = s.cluster.state.Version
}

// existingFindings are about an existing cluster as a whole. b.out[""] keeps all
// of it out of the plan.
func (w wanted) existingFindings(b *book, s sight) {
	switch {
	case w.existing() == nil:
	case w.blind():
		b.findings = append(b.findings, diag.Found("cluster-unseen", "",
			"machines join "+w.existing().Server+" by its token; whether their nodes are Ready, the GPU Operator and the proof of their GPUs cannot be seen without kubernetes.existing.kubeconfig"))
	case !s.cluster.there():
		b.out[""] = true // the run's error says why
	case len(w.machines) > 0 && !strings.Contains(s.cluster.state.Version, "+k3s"):
		b.findings = append(b.findings, diag.Found("existing-not-k3s", "", "its version is "+s.cluster.state.Version))
		b.out[""] = true
	}
}

// gpuCount is how many GPUs a node has: by its machine where that was seen, else
// by what the cluster says of it.
func (s sight) gpuCount(name string) int {
	if f, seen := s.facts[name]; seen {
		return len(nvidia.GPUs(f))
	}
	n, _ := s.cluster.state.Node(name)
	return nodeGPUs(n)
}

// nodeGPUs is what feature discovery counts, else what the device plugin offers.
func nodeGPUs(n kube.Node) int {
	if count, err := strconv.Atoi(n.Labels["nvidia.com/gpu.count"]); err == nil && count > 0 && count <= 1024 {
		return count
	}
	shared := sharing.Seen(n.Labels, n.Allocatable)
	return int(n.Capacity[shared.Resource()]) / shared.Units()
}

// foreign says whether a node is known by the API alone.
func (s sight) foreign(name string) bool {
	_, seen := s.facts[name]
	return !seen && s.unreached[name] == nil
}

// foreignNodes are the nodes with GPUs of an existing cluster of which no machine is named.
func (w wanted) foreignNodes(s sight) []inventory.Machine {
	var out []inventory.Machine
	for _, n := range s.cluster.state.Nodes {
		if nodeGPUs(n) == 0 || len(w.only) > 0 && !slices.Contains(w.only, n.Name) {
			continue
		}
		out = append(out, inventory.Machine{Name: n.Name, Role: inventory.Agent, Group: w.groupByLabels(n)})
	}
	return out
}

// groupByLabels is the first group whose selector fits a node, else that of all of them.
func (w wanted) groupByLabels(n kube.Node) string {
	for _, g := range w.config.Spec.Groups {
		fits := len(g.Selector) > 0
		for label, want := range g.Selector {
			have, there := n.Labels[label]
			if label == "nvidia.com/gpu.product" { // sharing adds to it
				have, _, _ = strings.Cut(strings.TrimSuffix(have, "-SHARED"), "-MIG-")
			}
			fits = fits && there && have == want
		}
		if fits {
			return g.Name
		}
	}
	return w.existing().Group
}

// gpuHalf is all there is to do where no machine is named. The operator comes
// first and alone: which nodes have GPUs is known when it is ready, so that what
// they need comes in with the plan that is made then.
func (w wanted) gpuHalf(b *book, s sight, do doer) {
	if !w.config.OperatorEnabled() {
		b.findings = append(b.findings, diag.Found("operator-missing", "", "gpu.operator.enabled is false: what offers the GPUs to pods is left to others"))
	} else {
		b.actions = append(b.actions, w.installOperator(b, s, do)...)
		b.actions = append(b.actions, w.operatorFirst(b, s, do)...)
	}
	for _, m := range w.foreignNodes(s) {
		closing := w.close(m, s, do)
		needs := []string{operatorReadyID}
		for _, a := range closing {
			needs = append(needs, a.ID)
		}
		actions := append(w.mark(m, s, do), closing...)
		actions = append(actions, needing(append(w.prove(m, s, do), w.shareForeign(b, m, s, do)...), needs)...)
		for _, a := range actions {
			// The node is no machine that could be looked at again: it is looked at with the cluster.
			a.Machine, a.Title = "", m.Name+": "+a.Title
			b.actions = append(b.actions, a)
		}
	}
	w.oneFirst(b, s, do)
}

// shareForeign is share for a node of which no machine is named: MIG mode is
// switched on the machine, so that it is for its owner to do.
func (w wanted) shareForeign(b *book, m inventory.Machine, s sight, do doer) []plan.Action {
	if want := w.spec(m, s.facts[m.Name]); want.Kind == sharing.MIG {
		b.findings = append(b.findings, diag.Found("sharing-refused", m.Name, "MIG needs the machine itself, and no machine of that name stands in gpuctl.yaml"))
		return nil
	}
	return w.share(b, m, s, do)
}

// operatorFirst waits for the operator before anything is asked of its nodes.
func (w wanted) operatorFirst(b *book, s sight, do doer) []plan.Action {
	changing := slices.ContainsFunc(b.actions, func(a plan.Action) bool { return a.ID == operatorID })
	if s.cluster.state.Policy.Ready() && !changing || len(b.findings) > 0 && diag.AnyBlocks(b.findings) {
		return nil
	}
	reason := s.cluster.state.Policy.Why()
	if changing {
		reason = "its release changes"
	}
	return []plan.Action{{
		ID: operatorReadyID, Title: "see the GPU Operator ready", Reason: reason, Barrier: true,
		Needs: []string{operatorID}, Timeout: 45 * time.Minute,
		Apply: func(ctx context.Context, say plan.Say) error {
			client, releaser, err := do.api.connect(ctx)
			if err != nil {
				return err
			}
			state, err := client.Snapshot(ctx)
			if err != nil {
				return err
			}
			// Which nodes have GPUs is what the operator is about to find out: its own word counts.
			if err := releaser.WaitOperatorReady(ctx, charts.OperatorReady{
				Namespace: w.namespaceOfGate(s, state), Limits: charts.GateLimits{Policy: 20 * time.Minute},
			}, charts.Say(say)); err != nil {
				return w.diagnosed(ctx, client, "", err)
			}
			return w.diagnosed(ctx, client, "", kube.Wait(ctx, 2*time.Second, 15*time.Minute, settledCards(client), say))
		},
	}}
}

// namespaceOfGate is where the operator's deployment is to be seen, "" where only its policy is known.
func (w wanted) namespaceOfGate(s sight, now kube.State) string {
	if len(w.operatorOutOfReach(s)) > 0 {
		return ""
	}
	wish, _ := w.operator(s)
	if rel, _, adopted := charts.Adopt(wish, s.cluster.release); adopted {
		return rel.Namespace
	}
	return w.operatorNamespace(now)
}

func closeID(node string) string { return node + "/taint" }

// close keeps work away from a node of somebody else's until its GPUs are proven,
// where that is asked for.
func (w wanted) close(m inventory.Machine, s sight, do doer) []plan.Action {
	n, _ := s.cluster.state.Node(m.Name)
	if !w.taintsUnproven() || n.HasTaint(charts.UnprovenTaint) || unproven(s, m, s.facts[m.Name]) == "" {
		return nil
	}
	return []plan.Action{{
		ID: closeID(m.Name), Title: "keep work away", Reason: "its GPUs are not proven", Timeout: time.Minute,
		Changes: []string{"taint " + charts.UnprovenTaint + ":NoSchedule until the smoke test passes"},
		Apply: func(ctx context.Context, _ plan.Say) error {
			client, _, err := do.api.connect(ctx)
			if err != nil {
				return err
			}
			return client.SetTaint(ctx, m.Name, unprovenTaint())
		},
	}}
}
