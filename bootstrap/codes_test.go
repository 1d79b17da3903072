package bootstrap

import (
	"errors"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/charts"
	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/kube"
	"github.com/gpuctl/gpuctl/internal/sharing"
	"github.com/gpuctl/gpuctl/internal/smoke"
)

func codesIn(found []diag.Finding) string {
	var out []string
	for _, f := range found {
		out = append(out, string(f.Code))
	}
	return strings.Join(out, " ")
}

func TestSharingFindings(t *testing.T) {
	held := kube.State{Pods: []kube.Pod{{Namespace: "team", Name: "train-0", Node: "gpu-1"}}}
	elsewhere := kube.State{Pods: []kube.Pod{{Namespace: "team", Name: "train-0", Node: "gpu-2"}, {Namespace: smoke.Namespace, Name: "proof", Node: "gpu-1"}}}
	sliced := sharing.Spec{Kind: sharing.TimeSlicing, Replicas: 4}
	renamed, absurd := sliced, sliced
	renamed.Rename, absurd.Replicas = true, sharing.Absurd
	for name, c := range map[string]struct {
		want  sharing.Spec
		state kube.State
		codes []string
	}{
		"whole GPUs":           {sharing.Spec{Kind: sharing.Whole}, elsewhere, nil},
		"a few pods for a GPU": {sliced, elsewhere, []string{"sharing-no-isolation"}},
		"another name":         {renamed, elsewhere, []string{"sharing-no-isolation", "sharing-renamed"}},
		"too many":             {absurd, elsewhere, []string{"sharing-no-isolation", "sharing-absurd"}},
		"pods hold GPUs":       {sliced, held, []string{"sharing-no-isolation", "sharing-pods-stay"}},
	} {
		if got := codesIn(sharingFindings("gpu-1", c.want, c.state)); got != strings.Join(c.codes, " ") {
			t.Errorf("%s: %q, want %q", name, got, c.codes)
		}
	}
}

// A node of an operator that gpuctl does not keep is not shared, and that is told.
func TestAForeignOperatorsNodeIsNotShared(t *testing.T) {
	w := sharedBy(t, clusterOf(t, "server-1", "gpu-1"), "{timeSlicing: 4}")
	s := settledSight(t, w, 0, 2)
	if got := codesIn(w.contents(s, pure()).findings); strings.Contains(got, "foreign") {
		t.Errorf("its own operator: %s", got)
	}
	s.cluster.release = charts.State{Phase: charts.Absent, Foreign: []charts.Foreign{{Name: "other"}}}
	for _, f := range w.contents(s, pure()).findings {
		if f.Code == "sharing-foreign-operator" && f.Machine == "gpu-1" && f.Evidence != "" {
			return
		}
	}
	t.Errorf("%+v", w.contents(s, pure()).findings)
}

func TestAProofThatFailedHasACode(t *testing.T) {
	report := smoke.Report{Nodes: []smoke.NodeReport{{Node: "gpu-1", Status: smoke.Failed, Findings: []smoke.Finding{{Code: smoke.CodeCompute, Evidence: "x"}}}}}
	for node, code := range map[string]diag.Code{"gpu-1": smoke.CodeCompute, "gpu-2": "smoke-not-proven"} {
		if got := (&notProven{node, report}).DiagCode(); got != code {
			t.Errorf("%s: %s, want %s", node, got, code)
		}
	}
}

func TestASilentAPIIsAFinding(t *testing.T) {
	found := silentAPI(errors.New("connection refused"))
	if len(found) != 1 || found[0].Code != "api-not-there" || found[0].Severity != diag.Blocks || found[0].Evidence != "connection refused" {
		t.Errorf("%+v", found)
	}
	if found = silentAPI(nil); len(found) > 0 {
		t.Errorf("the API answers: %+v", found)
	}
}
