package bootstrap

import (
	"slices"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/bootstrap/k3s"
	"github.com/gpuctl/gpuctl/bootstrap/nvidia"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/inventory"
)

// book is a plan: what is pending, what was found, which addresses were chosen.
type book struct {
	actions  []plan.Action
	findings []diag.Finding
	network  Network
	// move is how far the operator's move to another version is.
	move move
	// out are the machines that take no part: not reached, or blocked by a finding.
	out map[string]bool
}

// contents is the table of contents of a cluster: every machine from its
// operating system to its proof, and the GPU Operator between. It is pure: do
// is handed on to the actions and used only when they are applied.
func (w wanted) contents(s sight, do doer) book {
	b := book{network: w.network(s), out: map[string]bool{}}
	b.findings = append(host.CrossFindings(w.named(s)), w.unlisted(s.cluster.state)...)
	b.findings = append(b.findings, leaving(s.cluster.state)...)
	between := pairFindings(s.pairs, s.exposed, w.machines)
	b.findings = append(b.findings, untold(b.network.findings, between)...)
	b.findings = append(b.findings, between...)
	if s.other != "" {
		b.findings = append(b.findings, diag.Found("cluster-other", w.server().Name, s.other))
	}
	b.findings = append(b.findings, w.serverFindings(s, b.network)...)
	b.findings = append(b.findings, w.upgradeFindings(s)...)
	for _, f := range b.findings {
		b.out[f.Machine] = b.out[f.Machine] || f.Severity == diag.Blocks
	}
	for _, m := range w.machines {
		if _, seen := s.facts[m.Name]; !seen {
			b.out[m.Name] = true
			continue
		}
		w.machine(&b, m, s, do)
	}
	w.existingFindings(&b, s)
	if b.out[w.lead(s).Name] {
		// Without the control plane nothing else can come about.
		b.actions = nil
		return b
	}
	b.actions = append(b.actions, w.keepKnownHosts(s, do)...)
	w.cluster(&b, s, do)
	b.actions = w.rollout(b.actions, s, do)
	w.offline(&b, s, do)
	return b
}

// untold are the findings that others do not make of the same machine: what packets
// showed says more than what interfaces let expect.
func untold(findings, others []diag.Finding) []diag.Finding {
	return slices.DeleteFunc(slices.Clone(findings), func(f diag.Finding) bool {
		return slices.ContainsFunc(others, func(o diag.Finding) bool { return o.Code == f.Code && o.Machine == f.Machine })
	})
}

// machine plans one machine, in the order in which things are needed.
func (w wanted) machine(b *book, m inventory.Machine, s sight, do doer) {
	facts, on := s.facts[m.Name], do.on(m.Name)
	hostWant, gpuWant, k3sWant := w.host(m, s, b.network), w.nvidia(m), w.k3s(m, s, b.network)
	needs := []string{m.Name + "/host-kernel", m.Name + "/toolkit"}
	if m.DataDisk != nil {
		needs = append(needs, host.DiskID(m.Name))
	}
	if hostWant.Open != nil {
		needs = append(needs, host.FirewallID(m.Name))
	}
	access := k3s.Access{On: on, Spread: spreading(m, b.network, do), Bundled: w.bundledK3s(facts)}
	needs = append(needs, w.earlier(m, s)...)
	if m.Role == inventory.Agent || k3sWant.ServerURL != "" {
		if lead := w.lead(s).Name; w.existing() == nil && m.Role == inventory.Agent {
			needs = append(needs, k3s.ActionID(lead))
		}
		access.Join = do.credentials
	}

	found := append(host.Findings(hostWant, facts), nvidia.Findings(gpuWant, facts)...)
	found = append(found, w.refusedSharing(m, s)...)
	actions := host.Plan(hostWant, facts, on)
	actions = append(actions, nvidia.Plan(gpuWant, facts, on)...)
	needs = append(needs, driverWay(actions, m.Name)...)
	seen := k3s.See(facts, w.key)
	seen.Registries, seen.Unregistered = s.registries[m.Name], unregistered(m, s)
	k3sActions, k3sFound := k3s.Plan(k3sWant, seen, access, needs...)
	if seen.Unregistered != "" {
		w.clearBefore(k3sActions, m, s, do)
	}
	tellRejection(k3sActions, m, b.network.Addresses[m.Name].NodeIP, do)
	actions = w.drain(m, s, append(actions, k3sActions...), do)
	found = append(append(found, k3sFound...), w.bundleLacks(m, facts, actions)...)

	b.findings = append(b.findings, found...)
	if diag.AnyBlocks(found) || b.out[m.Name] {
		b.out[m.Name] = true
		return
	}
	b.actions = append(b.actions, actions...)
}

// cluster plans what lives in the cluster: nodes that come up, the operator, the proofs.
func (w wanted) cluster(b *book, s sight, do doer) {
	if w.blind() {
		return // nothing of it can be seen
	}
	var proofs, returning []string
	for _, m := range w.machines {
		if b.out[m.Name] {
			continue
		}
		b.actions = append(b.actions, needing(w.nodeReady(m, s, do), driverWay(b.actions, m.Name))...)
		b.actions = append(b.actions, w.mark(m, s, do)...)
		for _, a := range w.open(m, s, b.actions, do) {
			b.actions, returning = append(b.actions, a), append(returning, a.ID)
		}
	}
	if w.existing() != nil && len(w.machines) == 0 {
		w.gpuHalf(b, s, do)
		return
	}
	if _, serves := w.gpuRelease(s); !serves || !w.anyGPU(b, s) {
		return
	}
	if w.config.OperatorEnabled() {
		b.actions = append(b.actions, needing(w.installOperator(b, s, do), w.labelled(b, s))...)
	} else {
		b.actions = append(b.actions, w.installPlugin(s, do)...)
	}
	for _, m := range w.machines {
		if b.out[m.Name] || len(nvidia.GPUs(s.facts[m.Name])) == 0 {
			continue
		}
		proof := needing(append(w.prove(m, s, do), w.share(b, m, s, do)...), driverWay(b.actions, m.Name))
		if !w.config.OperatorEnabled() {
			proof = needing(proof, []string{pluginID})
		}
		for _, a := range proof {
			proofs = append(proofs, a.ID)
		}
		b.actions = append(b.actions, proof...)
	}
	if w.config.OperatorEnabled() {
		b.actions = append(b.actions, w.operatorReady(s, do, proofs, returning)...)
	}
	b.actions = w.canary(s, b.actions)
	w.oneFirst(b, s, do)
}

func (w wanted) anyGPU(b *book, s sight) bool {
	for _, m := range w.machines {
		if !b.out[m.Name] && len(nvidia.GPUs(s.facts[m.Name])) > 0 {
			return true
		}
	}
	return false
}

func (w wanted) named(s sight) []host.NamedFacts {
	var all []host.NamedFacts
	for _, m := range w.machines {
		if f, seen := s.facts[m.Name]; seen {
			all = append(all, host.NamedFacts{Machine: m.Name, Facts: f})
		}
	}
	return all
}

// ofScope keeps the actions of one machine, or of the cluster for "".
func ofScope(actions []plan.Action, scope string) []plan.Action {
	var out []plan.Action
	for _, a := range actions {
		if a.Machine == scope {
			out = append(out, a)
		}
	}
	return out
}
