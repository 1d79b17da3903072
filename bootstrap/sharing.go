package bootstrap

import (
	"context"
	"fmt"
	"slices"
	"strings"
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

// sharedAnnotation says which way to share a node has proven; its value is the
// key of the device plugin's configuration.
const sharedAnnotation = "gpuctl.dev/sharing-proven"

func sharingID(machine string) string      { return machine + "/sharing" }
func sharingProofID(machine string) string { return machine + "/sharing-proof" }

// spec is how a machine's GPUs are to be shared, by the card it has.
func (w wanted) spec(m inventory.Machine, facts host.Facts) sharing.Spec {
	s := w.config.Group(m.Group).Spec()
	for _, c := range cardsOf(facts) {
		return s.On(c)
	}
	return s
}

// cardsOf are a machine's GPUs as the rules of sharing see them. Where no driver
// lists them yet the bus tells what they are.
func cardsOf(facts host.Facts) []sharing.Card {
	listed := map[string]host.GPU{}
	for _, g := range facts.SMI.Value.GPUs {
		listed[g.PCI] = g
	}
	var cards []sharing.Card
	for _, d := range nvidia.GPUs(facts) {
		c := sharing.Card{Model: nvidia.Model(d), Device: d.Device}
		if g, ok := listed[d.Address]; ok {
			c.Model, c.Compute, c.MIG, c.Driver = g.Name, g.Compute, g.MIG == "Enabled", facts.SMI.Value.DriverVersion
		}
		cards = append(cards, c)
	}
	return cards
}

// pluginConfigs are the device plugin's configurations that the groups need, by
// key, and the key of nodes without a label; none where no group shares.
func (w wanted) pluginConfigs() (map[string]string, string) {
	configs := map[string]string{}
	for _, g := range w.config.Spec.Groups {
		if s := g.Spec(); s.Kind == sharing.TimeSlicing || s.Kind == sharing.MPS {
			configs[s.Key()] = s.PluginConfig()
		}
	}
	if len(configs) == 0 {
		return nil, ""
	}
	configs[sharing.DefaultKey] = sharing.Spec{}.PluginConfig()
	return configs, sharing.DefaultKey
}

// refusedSharing is what NVIDIA rejects about sharing a machine's GPUs.
func (w wanted) refusedSharing(m inventory.Machine, s sight) []diag.Finding {
	want, cards := w.spec(m, s.facts[m.Name]), cardsOf(s.facts[m.Name])
	if n, _ := s.cluster.state.Node(m.Name); want.Kind == sharing.MPS && n.Annotations[migAnnotation] != "" {
		for i := range cards {
			cards[i].MIG = false // gpuctl cut them, and puts them together first
		}
	}
	var found []diag.Finding
	for _, why := range want.Refuse(cards) {
		found = append(found, diag.Found("sharing-refused", m.Name, why))
	}
	return found
}

// share brings a node to the way its group shares GPUs, after the GPUs were
// proven whole, and proves the sharing. A configuration that somebody else chose
// for a node of a group that shares nothing is left alone.
func (w wanted) share(b *book, m inventory.Machine, s sight, do doer) []plan.Action {
	want, count := w.spec(m, s.facts[m.Name]), s.gpuCount(m.Name)
	n, joined := s.cluster.state.Node(m.Name)
	_, ours := sharing.Parse(n.Labels[sharing.ConfigLabel])
	if want.Kind == sharing.Whole && !ours && n.Annotations[migAnnotation] == "" {
		return nil
	}
	if len(w.operatorOutOfReach(s)) > 0 {
		b.findings = append(b.findings, diag.Found("sharing-foreign-operator", m.Name, want.String()))
		return nil
	}
	var actions []plan.Action
	if reason := unshared(n, joined, want, count, len(s.facts[m.Name].SMI.Value.GPUs)); reason != "" {
		reset := needsReset(s.facts[m.Name], want.Kind == sharing.MIG) && (want.Kind == sharing.MIG || n.Annotations[migAnnotation] != "")
		actions = append(actions, plan.Action{
			ID: sharingID(m.Name), Machine: m.Name, Title: sharingTitle(n, joined, want, count), Reason: reason, Changes: sharingChanges(n, want),
			Needs: []string{nodeID(m.Name), operatorID, smokeID(m.Name)}, Timeout: 12 * time.Minute,
			Apply: func(ctx context.Context, say plan.Say) error { return w.shareNow(ctx, m, want, count, reset, do, say) },
		})
		if want.Kind == sharing.MIG || n.Annotations[migAnnotation] != "" {
			actions = w.cut(b, m, s, want, actions, do)
		}
		b.findings = append(b.findings, sharingFindings(m.Name, want, s.cluster.state)...)
	}
	if want.Kind != sharing.Whole && (len(actions) > 0 || n.Annotations[sharedAnnotation] != want.Key()) {
		actions = append(actions, plan.Action{
			ID: sharingProofID(m.Name), Machine: m.Name, Title: "prove the sharing of " + gpus(count),
			Reason:  "pods have not run side by side this way yet",
			Changes: []string{"a test pod for each free share, all at once, and one more that must wait: " + w.set.Smoke.Ref()},
			Needs:   []string{sharingID(m.Name), smokeID(m.Name)}, Timeout: 35 * time.Minute,
			Apply: func(ctx context.Context, say plan.Say) error { return w.proveSharing(ctx, m, s, want, do, say) },
		})
	}
	return actions
}

// unshared says why a node's sharing is to be changed, "" where it is as wanted.
// Capacity counts, not what is allocatable, and it may be that of the GPUs the
// driver still lists: a GPU that fell ill is no reason.
func unshared(n kube.Node, joined bool, want sharing.Spec, count, listed int) string {
	if want.Kind == sharing.MIG {
		return uncut(n, joined, want, count)
	}
	key, label := want.Key(), n.Labels[sharing.ConfigLabel]
	if want.Kind == sharing.Whole {
		key = ""
	}
	if cut := n.Labels[sharing.MIGConfigLabel]; n.Annotations[migAnnotation] != "" {
		return "its GPUs are cut into slices: " + cut
	}
	switch have := n.Capacity[want.Resource()]; {
	case !joined:
		return "its node is new"
	case label != key && label == "":
		return "its GPUs are not shared"
	case label != key:
		return "its label names the configuration " + label
	case have != int64(count*want.Units()) && (listed == 0 || have != int64(listed*want.Units())):
		return fmt.Sprintf("it has %d %s, not %d", have, want.Resource(), count*want.Units())
	}
	return ""
}

// shareNow chooses the configuration by the node's label and makes the device
// plugin read it: the operator does not watch the map of configurations.
func (w wanted) shareNow(ctx context.Context, m inventory.Machine, want sharing.Spec, count int, reset bool, do doer, say plan.Say) error {
	client, err := w.setSlices(ctx, m, want, count, reset, do, say)
	if err != nil {
		return err
	}
	if want.Kind == sharing.Whole || want.Kind == sharing.MIG {
		err = client.SetLabels(ctx, m.Name, nil, sharing.ConfigLabel)
	} else {
		err = client.SetLabels(ctx, m.Name, map[string]string{sharing.ConfigLabel: want.Key()})
	}
	if err != nil {
		return err
	}
	if err := client.SetAnnotations(ctx, m.Name, nil, sharedAnnotation); err != nil {
		return err
	}
	if want.Kind == sharing.MIG { // the MIG manager restarts them, after its work
		return w.waitShared(ctx, client, m, want, count, reset, say)
	}
	state, err := client.Snapshot(ctx)
	if err != nil {
		return err
	}
	if err := client.RestartPods(ctx, w.operatorNamespace(state), m.Name, "nvidia-device-plugin-daemonset", "gpu-feature-discovery"); err != nil {
		return err
	}
	return w.waitShared(ctx, client, m, want, count, reset, say)
}

func (w wanted) waitShared(ctx context.Context, client *kube.Client, m inventory.Machine, want sharing.Spec, count int, reset bool, say plan.Say) error {
	if err := kube.Wait(ctx, 2*time.Second, 10*time.Minute, asShared(client, m.Name, want, count, w.patience(reset)), say); err != nil {
		return fmt.Errorf("waiting for %s to be %s: %w", gpus(count), want, err)
	}
	return nil
}

// asShared waits for labels, capacity and allocatable of a way to share.
func asShared(client *kube.Client, node string, want sharing.Spec, count int, patience time.Duration) kube.Condition {
	gaveUp := stays(patience)
	return func(ctx context.Context) (bool, string, error) {
		state, err := client.Snapshot(ctx)
		if err != nil {
			return false, "", err
		}
		n, joined := state.Node(node)
		if !joined {
			return false, "node " + node + " is not there: " + state.NoAPI, nil
		}
		if want.Kind == sharing.MIG && gaveUp(n.Labels[sharing.MIGStateLabel] == "failed") {
			return false, "", &migFailed{want.MIGConfig()}
		}
		missing := want.Missing(count, n.Labels, n.Capacity, n.Allocatable)
		reason := strings.Join(missing, "; ")
		if len(missing) > 0 && !state.Policy.Ready() {
			reason += "; " + state.Policy.Why()
		}
		return len(missing) == 0, reason, nil
	}
}

// proveSharing runs pods side by side and keeps that this way to share is proven.
func (w wanted) proveSharing(ctx context.Context, m inventory.Machine, s sight, want sharing.Spec, do doer, say plan.Say) error {
	client, _, err := do.api.connect(ctx)
	if err != nil {
		return err
	}
	state, err := client.Snapshot(ctx)
	if err != nil {
		return err
	}
	tests := w.listedRemotely(ctx, client, smokeTests(m.Name, s.facts[m.Name], state), exporterLimit, say)
	report, err := smoke.Run(ctx, client.Interface(), tests, w.smokeOptions(),
		func(_, format string, args ...any) { say(format, args...) })
	do.smoke.add(report)
	if err != nil {
		return err
	}
	if err := settleProof(ctx, client, m.Name, report); err != nil {
		return err
	}
	return client.SetAnnotations(ctx, m.Name, map[string]string{sharedAnnotation: want.Key()})
}

// sharedSmoke fills what the test of a node needs to know of its sharing.
func sharedSmoke(out *smoke.Node, n kube.Node, state kube.State) {
	shared := sharing.Seen(n.Labels, n.Allocatable)
	out.Resource, out.Units = shared.Resource(), shared.Units()
	out.Allocatable = int(n.Allocatable[out.Resource])
	out.Requested = int(state.Requested(n.Name)[out.Resource])
}

// withSharing are the operator's values as far as sharing goes.
func (w wanted) withSharing(want charts.Want, s sight) charts.Want {
	want.PluginConfigs, want.PluginDefault = w.pluginConfigs()
	want.MIG, want.MIGConfigs = w.migValues(s)
	return want
}

// keep are the actions that the options leave in a plan.
func (o ApplyOptions) keep(actions []plan.Action) []plan.Action {
	if o.SkipSmoke {
		actions = withoutProofs(actions)
	}
	if !o.SharingOnly {
		return actions
	}
	return slices.DeleteFunc(slices.Clone(actions), func(a plan.Action) bool {
		kinds := []string{drainID(""), sharingID(""), sharingProofID(""), openID("")}
		return a.ID != operatorID && !slices.ContainsFunc(kinds, func(kind string) bool { return strings.HasSuffix(a.ID, kind) })
	})
}
