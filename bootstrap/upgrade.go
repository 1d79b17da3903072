package bootstrap

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/k3s"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/inventory"
	"github.com/gpuctl/gpuctl/internal/kube"
)

// upgrade is how machines are brought to another release of k3s.
type upgrade struct {
	// unavailable is how many agents may be closed to work at once; servers change one at a time.
	unavailable int
	// drain empties each node before its k3s changes.
	drain bool
	// saved says that this run has its snapshot: a server that fails later asks for no second one.
	saved atomic.Bool
}

// UpgradeOptions say how k3s is brought to the release of the file.
type UpgradeOptions struct {
	ApplyOptions
	// MaxUnavailable is how many agents may change at once, at least 1.
	MaxUnavailable int
	// NoDrain leaves pods where they are: they run on while k3s restarts.
	NoDrain bool
}

// snapshotID is the snapshot of etcd before an upgrade.
const snapshotID = "cluster/etcd-snapshot"

// Upgrade brings every machine to the file's release of k3s: servers one after
// the other, then agents, each drained, changed, seen Ready at the new release
// and opened again. Run again it goes on where it was. The error is a
// *BlockedError where the step is not safe. Without an API nothing is changed:
// nodes could be neither drained nor judged.
func (e *Engine) Upgrade(ctx context.Context, o UpgradeOptions) (ApplyResult, error) {
	e.want.upgrade = &upgrade{unavailable: max(1, o.MaxUnavailable), drain: !o.NoDrain}
	return e.Apply(ctx, o.ApplyOptions)
}

// release is the release of k3s that a machine shall have: what it has, until
// an upgrade is asked for; one that joins gets the servers', never a newer one
// (https://kubernetes.io/releases/version-skew-policy).
func (w wanted) release(m inventory.Machine, s sight) string {
	want := w.kubernetes()
	if w.upgrade != nil {
		return want
	}
	have := s.facts[m.Name].K3s.Value
	if _, installed := have.Units[unitOf(m)]; installed && k3s.Older(have.Version, want) {
		return have.Version
	}
	lead := s.facts[w.lead(s).Name]
	if serverInstalled(lead) && k3s.Older(lead.K3s.Value.Version, want) && w.existing() == nil {
		return lead.K3s.Value.Version
	}
	return want
}

// upgradeFindings says what stands against an upgrade, or that one waits to be
// asked for. It is pure.
func (w wanted) upgradeFindings(s sight) []diag.Finding {
	want := w.kubernetes()
	var behind []string
	for _, m := range w.machines {
		have := s.facts[m.Name].K3s.Value
		if _, installed := have.Units[unitOf(m)]; installed && k3s.Older(have.Version, want) {
			behind = append(behind, m.Name+" "+have.Version)
		}
	}
	lead := w.lead(s).Name
	switch {
	case len(behind) == 0 || w.existing() != nil && w.upgrade == nil:
		return nil
	case w.upgrade == nil:
		return []diag.Finding{diag.Found("k3s-upgrade-waits", lead, fmt.Sprintf("wanted %s: %s", want, strings.Join(behind, ", ")))}
	}
	var out []diag.Finding
	for _, m := range w.machines {
		have := s.facts[m.Name].K3s.Value
		if _, installed := have.Units[unitOf(m)]; !installed {
			continue
		}
		if why := k3s.Skew(have.Version, want); why != "" && m.Role == inventory.Agent {
			out = append(out, diag.Found("k3s-skew", lead, m.Name+": "+why))
		}
		if why := k3s.EtcdStep(have.Version, want); why != "" && m.Role == inventory.Server && w.config.Spec.Kubernetes.Datastore == k3s.Etcd {
			out = append(out, diag.Found("k3s-etcd-step", m.Name, why))
		}
	}
	return append(out, w.ailing(s)...)
}

// ailing refuses to take a server away for a while when another is away already.
func (w wanted) ailing(s sight) []diag.Finding {
	servers := w.serverList()
	if len(servers) < 2 || !s.cluster.there() {
		return nil
	}
	var out []diag.Finding
	for _, m := range servers {
		n, joined := s.cluster.state.Node(m.Name)
		_, seen := s.facts[m.Name]
		switch {
		case !seen:
			out = append(out, diag.Found("etcd-quorum", w.lead(s).Name, m.Name+" is not reached: while another server changes, etcd would have to do without both"))
		case joined && !n.Ready && n.Annotations[drainedAnnotation] == "":
			out = append(out, diag.Found("etcd-quorum", w.lead(s).Name, m.Name+" is not Ready ("+n.Reason+"): while another server changes, etcd would have to do without both"))
		}
	}
	return out
}

// changesRelease says whether an action brings a machine to another release, with its node emptied first.
func (w wanted) changesRelease(m inventory.Machine, s sight, a plan.Action) bool {
	have := s.facts[m.Name].K3s.Value
	_, installed := have.Units[unitOf(m)]
	return w.upgrade != nil && w.upgrade.drain && installed && a.ID == k3s.ActionID(m.Name) && have.Version != w.kubernetes()
}

// rollout orders an upgrade: servers in turn, then agents, as many at once as
// may be away. What failed stops all that come after it.
func (w wanted) rollout(actions []plan.Action, s sight, do doer) []plan.Action {
	if w.upgrade == nil {
		return actions
	}
	gates := map[string][]string{} // what the first change of a machine waits for
	var servers, behind []string
	for _, m := range w.inTurn(s) {
		gates[m.Name] = slices.Clone(servers)
		servers = append(servers, doneWith(m.Name)...)
	}
	for _, m := range w.machines {
		if m.Role == inventory.Server {
			continue
		}
		gates[m.Name] = slices.Clone(servers)
		if n := len(behind) - w.upgrade.unavailable; n >= 0 {
			gates[m.Name] = append(gates[m.Name], doneWith(behind[n])...)
		}
		if slices.ContainsFunc(actions, func(a plan.Action) bool { return a.ID == k3s.BinaryID(m.Name) }) {
			behind = append(behind, m.Name)
		}
	}
	out := slices.Clone(actions)
	snapshot := false
	for i, a := range out {
		if a.ID != drainID(a.Machine) && a.ID != k3s.ActionID(a.Machine) {
			continue
		}
		out[i].Needs = append(slices.Clone(a.Needs), gates[a.Machine]...)
		if slices.Contains(w.serverNames(), a.Machine) {
			out[i].Needs = append(out[i].Needs, snapshotID)
			snapshot = snapshot || slices.ContainsFunc(actions, func(b plan.Action) bool { return b.ID == k3s.BinaryID(a.Machine) })
		}
	}
	if snapshot && !w.upgrade.saved.Load() && w.config.Spec.Kubernetes.Datastore == k3s.Etcd && s.cluster.there() {
		out = append(out, w.snapshotBefore(s, do))
	}
	return out
}

func (w wanted) serverNames() []string {
	var out []string
	for _, m := range w.serverList() {
		out = append(out, m.Name)
	}
	return out
}

// doneWith are the actions after which a machine has changed and works again.
func doneWith(machine string) []string {
	return []string{k3s.ActionID(machine), nodeID(machine), smokeID(machine), openID(machine)}
}

// snapshotBefore keeps etcd as it was: what a newer release has written an older one cannot read.
func (w wanted) snapshotBefore(s sight, do doer) plan.Action {
	lead := w.lead(s)
	name := "before-" + strings.ReplaceAll(w.kubernetes(), "+", "-")
	return plan.Action{
		ID: snapshotID, Title: "take a snapshot of etcd", Reason: "its servers change to " + w.kubernetes(), Timeout: 3 * time.Minute,
		Changes: []string{name + "-... in " + (k3s.Want{DataDir: lead.DataDir}).Data() + "/server/db/snapshots on " + lead.Name},
		Apply: func(ctx context.Context, say plan.Say) error {
			saved, err := k3s.SaveSnapshot(ctx, do.on(lead.Name), lead.DataDir, name)
			if err == nil {
				w.upgrade.saved.Store(true)
				say("saved %s on %s", saved, lead.Name)
			}
			return err
		},
	}
}

// awaitsRelease is why a node that is Ready is waited for all the same: its kubelet is the one of before.
func (w wanted) awaitsRelease(n kube.Node) string {
	if w.upgrade == nil || n.Kubelet == "" || !k3s.Older(n.Kubelet, w.kubernetes()) {
		return ""
	}
	return "its kubelet is " + n.Kubelet + ", wanted " + w.kubernetes()
}
