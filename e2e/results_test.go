//go:build lab

package e2e_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/e2e/scene"
)

const unproven = "gpuctl.dev/unproven"

// Exit codes of gpuctl.
const (
	exitFindings    = 3
	exitUnreachable = 4
	exitAction      = 5
	exitSmoke       = 6
	exitLocked      = 7
)

// applied is what apply -o json prints, as far as tests read it.
type applied struct {
	Changed  int
	Findings []struct{ Code, Machine, Evidence, Severity string }
	Machines []struct{ Name, State, Error string }
	Outcomes []struct{ ID, Machine, Status, Error, Code string }
	Nodes    []node
	Traffic  map[string]struct{ Connections, Commands int }
}

type node struct {
	Name, Role, Why          string
	Ready, Proven            bool
	GPUs, Allocatable, InUse int
}

type status struct {
	Cluster, Operator, RuntimePath string
	Nodes                          []node
	Missing                        []string
}

// proven fails the test unless status says that the nodes are ready and that
// exactly these GPUs are there and proven, and the API server agrees.
func proven(t *testing.T, s *scene.Scene, want map[string]int) {
	t.Helper()
	var got status
	s.Decode(s.Must(0, "status", "-o", "json"), &got)
	if got.Operator != "ready" || len(got.Missing) > 0 || len(got.Nodes) != len(want) {
		t.Errorf("status: operator %q, missing %v, %d nodes; want ready, none, %d", got.Operator, got.Missing, len(got.Nodes), len(want))
	}
	for _, n := range got.Nodes {
		gpus := want[n.Name]
		if !n.Ready || n.GPUs != gpus || n.Allocatable != gpus || n.InUse != 0 || n.Proven != (gpus > 0) {
			t.Errorf("status of %s: %+v; want it ready with %d proven GPUs, none in use", n.Name, n, gpus)
		}
	}
	for name, n := range s.Nodes() {
		if !n.Ready() || n.Tainted(unproven) {
			t.Errorf("node %s: ready %v, taints %v", name, n.Ready(), n.Spec.Taints)
		}
	}
}

// mentions fails the test unless text has every part in it.
func mentions(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%s does not mention %q:\n%s", what, p, text)
		}
	}
}

// started says whether one of the events begins an action.
func started(events []scene.Event, action string) bool {
	return slices.ContainsFunc(events, func(e scene.Event) bool { return e.Kind == "action-started" && e.Action == action })
}
