package bootstrap

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/internal/config"
	"github.com/gpuctl/gpuctl/internal/inventory"
	"github.com/gpuctl/gpuctl/internal/kube"
)

// The keys of labels and taints that gpuctl set on a node for its group, comma
// separated: what is taken out of the file leaves the node, what others set stays.
const (
	labelsAnnotation = "gpuctl.dev/labels"
	taintsAnnotation = "gpuctl.dev/taints"
)

func labelsID(machine string) string { return machine + "/labels" }

// marks are what a node lacks of its group's labels and taints, and has too much of.
type marks struct {
	labels       map[string]string
	dropLabels   []string
	taints       []corev1.Taint
	dropTaints   []string
	annotations  map[string]string
	dropNotes    []string
	reasons      []string
	labelChanges []string
}

// mark brings a node's labels and taints to what its group says. k3s sets
// taints itself when a node registers; this is for nodes that have joined before.
func (w wanted) mark(m inventory.Machine, s sight, do doer) []plan.Action {
	group := w.marked(m, s)
	n, joined := s.cluster.state.Node(m.Name)
	d := marksOf(group, n)
	if len(d.reasons) == 0 {
		return nil
	}
	reason := "its node is new"
	if joined {
		reason = strings.Join(d.reasons, "; ")
	}
	return []plan.Action{{
		ID: labelsID(m.Name), Machine: m.Name, Title: "label the node", Reason: reason, Changes: d.labelChanges,
		Needs: []string{nodeID(m.Name)}, Timeout: 2 * time.Minute,
		Apply: func(ctx context.Context, _ plan.Say) error {
			client, _, err := do.api.connect(ctx)
			if err != nil {
				return err
			}
			now, err := client.Snapshot(ctx)
			if err != nil {
				return err
			}
			n, _ := now.Node(m.Name) // it may have joined since
			return setMarks(ctx, client, m.Name, marksOf(group, n))
		},
	}}
}

func setMarks(ctx context.Context, client *kube.Client, node string, d marks) error {
	if err := client.SetLabels(ctx, node, d.labels, d.dropLabels...); err != nil {
		return err
	}
	for _, t := range d.taints {
		if err := client.SetTaint(ctx, node, t); err != nil {
			return err
		}
	}
	for _, key := range d.dropTaints {
		if err := client.RemoveTaint(ctx, node, key); err != nil {
			return err
		}
	}
	return client.SetAnnotations(ctx, node, d.annotations, d.dropNotes...)
}

// marksOf compares a group with a node. It is pure.
func marksOf(group config.Group, n kube.Node) marks {
	d := marks{labels: map[string]string{}, annotations: map[string]string{}}
	differs := func(reason, change string) {
		d.reasons, d.labelChanges = append(d.reasons, reason), append(d.labelChanges, change)
	}
	for _, key := range slices.Sorted(maps.Keys(group.Labels)) {
		want := group.Labels[key]
		if have, there := n.Labels[key]; !there || have != want {
			d.labels[key] = want
			differs("it lacks label "+key+"="+want, "label "+key+"="+want)
		}
	}
	for _, key := range owned(n, labelsAnnotation) {
		if _, wanted := group.Labels[key]; !wanted {
			d.dropLabels = append(d.dropLabels, key)
			differs("label "+key+" is no longer wanted", "remove label "+key)
		}
	}
	wanted := taintsOf(group)
	for _, t := range wanted {
		if !slices.ContainsFunc(n.Taints, func(have corev1.Taint) bool { return sameTaint(have, t) }) {
			d.taints = append(d.taints, corev1.Taint{Key: t.Key, Value: t.Value, Effect: corev1.TaintEffect(t.Effect)})
			differs("it lacks taint "+t.String(), "taint "+t.String())
		}
	}
	for _, key := range owned(n, taintsAnnotation) {
		if !slices.ContainsFunc(wanted, func(t config.Taint) bool { return t.Key == key }) {
			d.dropTaints = append(d.dropTaints, key)
			differs("taint "+key+" is no longer wanted", "remove taint "+key)
		}
	}
	var taintKeys []string
	for _, t := range wanted {
		taintKeys = append(taintKeys, t.Key)
	}
	d.own(n, labelsAnnotation, slices.Sorted(maps.Keys(group.Labels)))
	d.own(n, taintsAnnotation, taintKeys)
	return d
}

// own keeps the keys that are gpuctl's now.
func (d *marks) own(n kube.Node, annotation string, keys []string) {
	slices.Sort(keys)
	want := strings.Join(keys, ",")
	have, there := n.Annotations[annotation]
	switch {
	case want == have:
	case want == "" && there:
		d.dropNotes = append(d.dropNotes, annotation)
	default:
		d.annotations[annotation] = want
		if len(d.reasons) == 0 {
			d.reasons = append(d.reasons, "it does not say which of its labels and taints are gpuctl's")
		}
	}
}

func owned(n kube.Node, annotation string) []string {
	return strings.FieldsFunc(n.Annotations[annotation], func(r rune) bool { return r == ',' })
}

func sameTaint(have corev1.Taint, want config.Taint) bool {
	return have.Key == want.Key && have.Value == want.Value && string(have.Effect) == want.Effect
}

// taintsOf are the group's taints; the configuration has checked them.
func taintsOf(group config.Group) []config.Taint {
	var out []config.Taint
	for _, text := range group.Taints {
		if t, err := config.ParseTaint(text); err == nil {
			out = append(out, t)
		}
	}
	return out
}

// taintKeys are the keys of all groups' taints: what runs GPUs must tolerate them.
func (w wanted) taintKeys() []string {
	var keys []string
	for _, m := range w.machines {
		for _, t := range taintsOf(w.config.Group(m.Group)) {
			keys = append(keys, t.Key)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}
