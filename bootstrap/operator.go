package bootstrap

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/k3s"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/charts"
	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/kube"
)

// maxShown bounds the values that a plan lists one by one.
const maxShown = 40

// installOperator brings the GPU Operator's release to the wanted state: gpuctl's
// own, or the one that is there already and is kept.
func (w wanted) installOperator(b *book, s sight, do doer) []plan.Action {
	if found := w.operatorOutOfReach(s); len(found) > 0 {
		b.findings = append(b.findings, found...)
		return nil
	}
	wish, overrides := w.operator(s)
	rel, seen, adopted := charts.Adopt(wish, s.cluster.release)
	if adopted {
		b.findings = append(b.findings, adoptedFinding(wish, rel, seen))
	}
	step, reason := charts.StepInstall, "there is no cluster yet"
	if s.cluster.there() {
		hash, err := charts.HashValues(rel.Values)
		if err != nil {
			reason = err.Error()
		} else if step, reason = charts.Decide(seen, rel, hash, s.cluster.at); step == charts.StepNone {
			return nil
		}
	}
	if found := w.versionPair(s, step, seen, rel); found != nil {
		b.findings = append(b.findings, *found)
		if found.Severity == diag.Blocks {
			return nil
		}
	}
	needs := []string{nodeID(w.lead(s).Name), k3s.ActionID(w.lead(s).Name)}
	if w.existing() != nil {
		needs = nil // its servers are there
	}
	change := plan.Action{
		ID: operatorID, Title: operatorTitle(step, seen, rel), Reason: reason, Changes: append(operatorChanges(step, seen, rel, overrides), wayBack(seen, rel)...),
		Needs: needs, Timeout: 20 * time.Minute,
	}
	b.move = w.moveOf(b, s, step, seen, rel)
	switch b.move {
	case moveOne:
		change.Changes = append(change.Changes, "the operator's pods on the nodes stay as they are until one node has proven its GPUs with the new ones")
		change.Apply = ensure(held(wish), do)
		return []plan.Action{change, w.moveOthers(wish, s, do)}
	case moveRest:
		return []plan.Action{w.moveOthers(wish, s, do)}
	}
	change.Apply = ensure(wish, do)
	return []plan.Action{change}
}

// ensure brings a release to a wish.
func ensure(wish charts.Release, do doer) func(context.Context, plan.Say) error {
	return func(ctx context.Context, say plan.Say) error {
		_, releaser, err := do.api.connect(ctx)
		if err != nil {
			return err
		}
		_, err = releaser.Ensure(ctx, wish, charts.Say(say))
		return err
	}
}

// operatorTitle says what is done to the release.
func operatorTitle(step charts.Step, seen charts.State, rel charts.Release) string {
	switch {
	case step == charts.StepUpgrade && seen.Version != rel.Chart.Version:
		return fmt.Sprintf("move GPU Operator %s -> %s", seen.Version, rel.Chart.Version)
	case step == charts.StepUpgrade:
		return "change the values of GPU Operator " + rel.Chart.Version
	case step == charts.StepInstall:
		return "install GPU Operator " + rel.Chart.Version
	case step == charts.StepWait:
		return "wait for another client's work on release " + rel.Namespace + "/" + rel.Name
	}
	return "mend release " + rel.Namespace + "/" + rel.Name + " of GPU Operator " + rel.Chart.Version
}

func operatorChanges(step charts.Step, seen charts.State, rel charts.Release, overrides []string) []string {
	changes := []string{fmt.Sprintf("chart %s %s from %s", rel.Chart.Name, rel.Chart.Version, rel.Chart.Repository)}
	if step == charts.StepRollback {
		changes = []string{fmt.Sprintf("release %s/%s goes back to revision %d, chart version %s", rel.Namespace, rel.Name, seen.LastGood, seen.GoodVersion)}
	}
	if rel.Chart.SHA256 == "" && step != charts.StepRollback {
		changes = append(changes, "the archive is checked against the repository's index: the set pins no checksum for it")
	}
	if len(overrides) > 0 && !rel.Adopted {
		changes = append(changes, "values of gpuctl.yaml that win over gpuctl's: "+strings.Join(overrides, ", "))
	}
	if step != charts.StepUpgrade {
		return changes
	}
	differ := charts.Diff(seen.Values, rel.Values)
	for i, c := range differ {
		if i == maxShown {
			changes = append(changes, fmt.Sprintf("and %d values more", len(differ)-maxShown))
			break
		}
		changes = append(changes, "value "+c.String())
	}
	return changes
}

// adoptedFinding says which release is kept, and what gpuctl would set otherwise.
func adoptedFinding(wish, rel charts.Release, seen charts.State) diag.Finding {
	var differ []string
	for _, c := range charts.Diff(rel.Values, wish.Values) {
		if c.To != "" { // what only the release has is nobody's business here
			differ = append(differ, brief(c))
		}
	}
	evidence := fmt.Sprintf("release %s/%s (%s, %s) is kept with its values", rel.Namespace, rel.Name, seen.Version, seen.Status)
	if len(differ) > maxShown {
		differ = append(differ[:maxShown], fmt.Sprintf("and %d more", len(differ)-maxShown))
	}
	if len(differ) > 0 {
		evidence += "; gpuctl's own would be: " + strings.Join(differ, ", ")
	}
	return diag.Found("operator-adopted", "", evidence)
}

// brief is a change in few words: a list of tolerations says nothing in a line.
func brief(c charts.Change) string {
	if len(c.From)+len(c.To) > 80 {
		return c.Path
	}
	return c.String()
}

// operatorOutOfReach says why an operator that is there can be used only as it
// is: a second one would fight with it over the same nodes.
func (w wanted) operatorOutOfReach(s sight) []diag.Finding {
	r, p := s.cluster.release, s.cluster.state.Policy
	switch {
	case !s.cluster.there() || r.Phase != charts.Absent:
		return nil
	case len(r.Foreign) > 1 || len(r.Foreign) == 1 && r.Other == nil:
		var all []string
		for _, f := range r.Foreign {
			all = append(all, f.String())
		}
		return []diag.Finding{diag.Found("operator-foreign", "", strings.Join(all, ", ")+" are there, and which is meant is not guessed; they are used as they are")}
	case len(r.Foreign) == 0 && p.Exists:
		return []diag.Finding{diag.Found("operator-not-helm", "", fmt.Sprintf("ClusterPolicy %s is there (%s) and no Helm release of the operator: it is used as it is", p.Name, orUnknown(p.State)))}
	}
	return nil
}

func orUnknown(s string) string {
	if s == "" {
		return "no state yet"
	}
	return s
}

// operatorNamespace is where the operator and its operands run.
func (w wanted) operatorNamespace(state kube.State) string {
	if n := state.Policy.Namespace; n != "" {
		return n
	}
	return w.set.Operator.Namespace
}

// askedOfTheirs is what gpuctl.yaml asks of an operator that is somebody else's.
func (w wanted) askedOfTheirs(s sight) charts.Asked {
	operator := w.config.Spec.GPU.Operator
	values, _ := charts.Merge(charts.SharingValues(w.withSharing(charts.Want{}, s)), operator.Values)
	a := charts.Asked{Version: operator.Version, Values: values, Taints: w.taintKeys()}
	if w.taintsUnproven() && w.existing() != nil {
		a.Taints = append(a.Taints, charts.UnprovenTaint)
	}
	return a
}

// versionPair holds the versions that are about to meet against what was tested
// together. What is there already and stays is nobody's choice now.
func (w wanted) versionPair(s sight, step charts.Step, seen charts.State, rel charts.Release) *diag.Finding {
	if step != charts.StepInstall && (step != charts.StepUpgrade || seen.Version == rel.Chart.Version) {
		return nil
	}
	kubernetes := w.kubernetes()
	if v := s.cluster.state.Version; v != "" {
		kubernetes = v
	}
	why := untestedPair(w.set, kubernetes, rel.Chart.Version)
	if why == "" {
		return nil
	}
	f := diag.Found("version-pair-untested", "", fmt.Sprintf("Kubernetes %s with GPU Operator %s: %s", kubernetes, rel.Chart.Version, why))
	if w.force {
		f.Severity = diag.Warns
	}
	return &f
}

// untestedPair says why nobody tested two versions together, "" where a set has them.
func untestedPair(set charts.Set, kubernetes, operator string) string {
	sets := []charts.Set{set}
	for _, name := range charts.Names() {
		if known, err := charts.Load(name); err == nil && name != set.Name {
			sets = append(sets, known)
		}
	}
	why := "no tested set has this operator"
	for _, t := range sets {
		if t.Operator.Version != operator {
			continue
		}
		if t.Supports(kubernetes) == "validated" {
			return ""
		}
		why = fmt.Sprintf("set %s has this operator with Kubernetes %s", t.Name, strings.Join(t.Kubernetes.Validated, ", "))
	}
	return why
}
