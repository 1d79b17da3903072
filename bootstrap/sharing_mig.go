package bootstrap

import (
	"context"
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

// migAnnotation says that gpuctl had a node's GPUs cut into slices: what others
// cut stays as it is. Its value is the configuration's name.
const migAnnotation = "gpuctl.dev/mig"

// migValues are the operator's MIG strategy and the MIG manager's own list. The
// manager stays where it has worked: a node is put together again by it.
func (w wanted) migValues(s sight) (strategy, configs string) {
	for _, g := range w.config.Spec.Groups {
		if spec := g.Spec(); spec.Kind == sharing.MIG {
			strategy = spec.Strategy
		}
	}
	for _, n := range s.cluster.state.Nodes {
		if strategy == "" && n.Labels[sharing.MIGConfigLabel] != "" {
			strategy = sharing.Single
			if n.Annotations[migAnnotation] != "" && n.Labels["nvidia.com/mig.strategy"] == sharing.Mixed {
				return sharing.Mixed, ""
			}
		}
	}
	return strategy, w.ownMIGList()
}

// uncut says why a node's slices are to be changed, "" where they are as wanted.
func uncut(n kube.Node, joined bool, want sharing.Spec, count int) string {
	label, state := n.Labels[sharing.MIGConfigLabel], n.Labels[sharing.MIGStateLabel]
	switch {
	case !joined:
		return "its node is new"
	case label != want.MIGConfig() && (label == "" || label == sharing.MIGOff):
		return "its GPUs are whole"
	case label != want.MIGConfig():
		return "its GPUs are cut into " + label
	case n.Labels[sharing.ConfigLabel] != "":
		return "its label names the configuration " + n.Labels[sharing.ConfigLabel]
	case state != "success":
		return "the MIG manager says " + state
	}
	for resource, units := range want.Offers(count) {
		if have := n.Capacity[resource]; units > 0 && have != units {
			return fmt.Sprintf("it has %d %s, not %d", have, resource, units)
		}
	}
	return ""
}

// needsReset says whether the machine's GPUs change their MIG mode only by a
// reset, and do not have the wanted one.
func needsReset(facts host.Facts, enable bool) bool {
	return slices.ContainsFunc(cardsOf(facts), func(c sharing.Card) bool {
		return sharing.ModeNeedsReset(c.Compute) && c.MIG != enable
	})
}

// cut completes the actions of a change of slices: pods that hold GPUs leave
// before, for the MIG manager does not move them (operator MIG page), the reboot
// that a change of mode may need has its consent, and the machine is looked at
// again afterwards, for its slices are new.
func (w wanted) cut(b *book, m inventory.Machine, s sight, want sharing.Spec, actions []plan.Action, do doer) []plan.Action {
	node, joined := s.cluster.state.Node(m.Name)
	change := &actions[len(actions)-1]
	change.Barrier, change.Timeout = true, 35*time.Minute
	if needsReset(s.facts[m.Name], want.Kind == sharing.MIG) {
		change.Consent = plan.ConsentReboot
		change.Changes = append(change.Changes, "the MIG mode of these cards changes only by a reset: the machine is rebooted where the mode stays pending")
	}
	// A node that is not proven yet takes no work, or none that gpuctl let come: a
	// first apply must not ask for a drain halfway.
	if _, proven := proofOf(node); !joined || !proven || node.HasTaint(charts.UnprovenTaint) || (node.Cordoned && node.Annotations[drainedAnnotation] == drainDone) {
		return actions
	}
	others := node.Cordoned && node.Annotations[drainedAnnotation] == ""
	change.Needs = append(change.Needs, drainID(m.Name))
	if !slices.ContainsFunc(b.actions, func(a plan.Action) bool { return a.ID == openID(m.Name) }) && !others {
		b.actions = append(b.actions, openAction(m, do))
	}
	return slices.Insert(actions, len(actions)-1, plan.Action{
		ID: drainID(m.Name), Machine: m.Name, Title: "let pods with GPUs leave the node", Reason: "its GPUs are cut anew: slices in use cannot change",
		Changes: []string{"cordon " + m.Name + ", evict its pods that hold GPUs; the others stay"},
		Needs:   []string{nodeID(m.Name), operatorID, smokeID(m.Name)}, Consent: plan.ConsentDrain, Timeout: 15 * time.Minute,
		Apply: func(ctx context.Context, say plan.Say) error { return emptyGPUs(ctx, m.Name, others, do, say) },
	})
}

// emptyGPUs keeps the proof of the GPUs: they stay what they are.
func emptyGPUs(ctx context.Context, node string, others bool, do doer, say plan.Say) error {
	client, _, err := do.api.connect(ctx)
	if err != nil {
		return err
	}
	mark := func(how string) error {
		if others {
			return nil
		}
		return client.SetAnnotations(ctx, node, map[string]string{drainedAnnotation: how})
	}
	if err := mark(drainBegan); err != nil {
		return err
	}
	if err := client.Drain(ctx, node, kube.DrainOptions{GPUsOnly: true, Limit: 10 * time.Minute}, say); err != nil {
		return err
	}
	return mark(drainDone)
}

// setSlices brings a node's MIG configuration to what is wanted: the mode first,
// where the MIG manager could not change it, then its label. A node that was not
// cut and is not to be is left alone.
func (w wanted) setSlices(ctx context.Context, m inventory.Machine, want sharing.Spec, count int, reset bool, do doer, say plan.Say) (*kube.Client, error) {
	client, _, err := do.api.connect(ctx)
	if err != nil {
		return nil, err
	}
	state, err := client.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	n, _ := state.Node(m.Name)
	enable := want.Kind == sharing.MIG
	if !enable && n.Annotations[migAnnotation] == "" {
		return client, nil
	}
	config := sharing.MIGOff
	if enable {
		config = want.MIGConfig()
		if err := client.SetAnnotations(ctx, m.Name, map[string]string{migAnnotation: config}); err != nil {
			return nil, err
		}
	}
	if w.ownMIGList() != "" { // a mounted list follows a change late, a new pod has it at once
		if err := client.RestartPods(ctx, w.set.Operator.Namespace, m.Name, "nvidia-mig-manager"); err != nil {
			return nil, err
		}
	}
	say("asking the MIG manager for %s", config)
	if err := client.SetLabels(ctx, m.Name, map[string]string{sharing.MIGConfigLabel: config}, sharing.MIGStateLabel); err != nil {
		return nil, err
	}
	// The mode comes after the label: a manager that still reads all-disabled when
	// the machine comes back would turn the mode off again.
	if reset {
		if client, err = w.changeMode(ctx, m, enable, do, say); err != nil {
			return nil, err
		}
	}
	if enable {
		return client, nil
	}
	if err := kube.Wait(ctx, 2*time.Second, 10*time.Minute, putTogether(client, m.Name, w.patience(reset)), say); err != nil {
		return nil, fmt.Errorf("waiting for %s to be whole: %w", gpus(count), err)
	}
	return client, client.SetAnnotations(ctx, m.Name, nil, migAnnotation)
}

// putTogether waits for the MIG manager to have turned MIG off.
func putTogether(client *kube.Client, node string, patience time.Duration) kube.Condition {
	gaveUp := stays(patience)
	return func(ctx context.Context) (bool, string, error) {
		state, err := client.Snapshot(ctx)
		if err != nil {
			return false, "", err
		}
		n, _ := state.Node(node)
		if gaveUp(n.Labels[sharing.MIGStateLabel] == "failed") {
			return false, "", &migFailed{sharing.MIGOff}
		}
		return n.Labels[sharing.MIGStateLabel] == "success", "the MIG manager says " + n.Labels[sharing.MIGStateLabel], nil
	}
}

// smokeTests are the tests of a node: one, but for slices of several profiles.
func smokeTests(name string, facts host.Facts, state kube.State) []smoke.Node {
	n, _ := state.Node(name)
	shared := sharing.Seen(n.Labels, n.Allocatable)
	if shared.Kind != sharing.MIG {
		return []smoke.Node{smokeNode(name, facts, state)}
	}
	var tests []smoke.Node
	requested := state.Requested(name)
	for _, resource := range shared.Resources() {
		test := smokeNode(name, facts, state)
		test.Resource, test.Beside, test.Host = resource, true, nil
		test.Allocatable, test.Requested = int(n.Allocatable[resource]), int(requested[resource])
		for _, g := range facts.SMI.Value.GPUs {
			for _, part := range g.Slices {
				if resource == sharing.GPU || resource == sharing.MIGResource(part.Profile) {
					test.Host = append(test.Host, smoke.GPU{UUID: part.UUID, Name: part.Profile, Of: g.UUID})
				}
			}
		}
		tests = append(tests, test)
	}
	return tests
}

// patience is how long "failed" of the MIG manager is borne: it says so of a mode
// that waits for the reboot, and of a list that it has not read yet.
func (w wanted) patience(reset bool) time.Duration {
	switch {
	case reset:
		return 3 * time.Minute
	case w.ownMIGList() != "":
		return time.Minute
	}
	return 0
}

// stays says whether something has been so for that long without a break.
func stays(limit time.Duration) func(bool) bool {
	var since time.Time
	return func(so bool) bool {
		switch {
		case !so:
			since = time.Time{}
			return false
		case since.IsZero():
			since = time.Now()
		}
		return time.Since(since) >= limit
	}
}

// ownMIGList is the MIG manager's list of gpuctl, "" where the operator's own does.
func (w wanted) ownMIGList() string {
	var specs []sharing.Spec
	for _, g := range w.config.Spec.Groups {
		specs = append(specs, g.Spec())
	}
	return sharing.MIGParted(specs)
}

// changeMode sets the MIG mode on the machine, which may reboot it, and returns
// when its node is Ready.
func (w wanted) changeMode(ctx context.Context, m inventory.Machine, enable bool, do doer, say plan.Say) (*kube.Client, error) {
	mayReboot := w.config.Group(m.Group).Driver.Reboot != "never"
	if err := nvidia.SetMIGMode(ctx, do.on(m.Name), enable, mayReboot, say); err != nil {
		return nil, err
	}
	var client *kube.Client
	err := kube.Wait(ctx, 2*time.Second, 6*time.Minute, func(ctx context.Context) (bool, string, error) {
		var err error
		if client, _, err = do.api.connect(ctx); err != nil {
			return false, err.Error(), nil //nolint:nilerr // the server may just have been rebooted
		}
		return client.NodeReady(m.Name)(ctx)
	}, say)
	return client, err
}

// migFailed is what the MIG manager said of a configuration.
type migFailed struct{ config string }

func (e *migFailed) Error() string {
	return "the MIG manager failed with " + e.config + "; its log tells why: kubectl logs -n gpu-operator -l app=nvidia-mig-manager"
}

// DiagCode names the entry of the catalogue that explains the failure.
func (e *migFailed) DiagCode() diag.Code { return "mig-config-failed" }
