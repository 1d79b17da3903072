//go:build lab

package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/e2e/lab/gpu"
	"github.com/gpuctl/gpuctl/e2e/lab/machine"
	"github.com/gpuctl/gpuctl/e2e/scene"
)

// codes are findings by code with their severity: "blocks", "warns", "informs".
type codes map[string]string

// failure is one way to break a machine, and what check has to say of it.
type failure struct {
	name string
	// modelled says what stands in for the real cause; empty where the cause
	// itself is there.
	modelled string
	// do and undo are scripts on the machine.
	do, undo string
	// gpus changes the machine's simulated GPUs.
	gpus func(*gpu.Scenario)
	// member and cluster change gpuctl.yaml.
	member  func(*scene.Member)
	cluster func(*scene.Cluster)
	// want is all that may be found beside what the healthy machines show.
	want codes
	// shows stands in the evidence.
	shows string
}

// finding is a line of check -o json.
type finding struct{ Code, Machine, Evidence, Severity string }

// ward is a machine that is broken in one way after the other.
type ward struct {
	t      *testing.T
	s      *scene.Scene
	on     *machine.Machine
	gpus   gpu.Scenario
	config scene.Cluster
	// place is the machine's among the members.
	place   int
	healthy map[finding]bool
}

// open looks at the healthy machines: nothing blocks, and what is said of them
// belongs to the computer that the lab runs on.
func (w *ward) open() {
	w.t.Helper()
	w.s.Write(w.config)
	w.healthy = map[finding]bool{}
	for _, f := range w.look(0, "") {
		if f.Severity == "blocks" {
			w.t.Fatalf("the healthy machine: %+v", f)
		}
		w.t.Logf("the healthy machines show %+v", f)
		f.Evidence = ""
		w.healthy[f] = true
	}
}

// run provokes each failure, wants exactly its findings, mends it, and ends
// with machines as healthy as before.
func (w *ward) run(all []failure) {
	for _, c := range all {
		w.t.Run(c.name, func(t *testing.T) {
			w.provoke(t, c)
		})
	}
	w.mend()
	if found := w.beyond(w.look(0, "")); len(found) > 0 {
		w.t.Errorf("when all is mended: %+v", found)
	}
}

// provoke is one failure, from the healthy machine and back.
func (w *ward) provoke(t *testing.T, c failure) {
	if c.modelled != "" {
		t.Logf("modelled: %s", c.modelled)
	}
	if c.gpus != nil {
		changed := w.gpus
		changed.GPUs = slices.Clone(changed.GPUs)
		c.gpus(&changed)
		lay(t, w.s, w.on, changed)
		defer w.mend()
	}
	config := w.config
	config.Members = slices.Clone(config.Members)
	if c.member != nil {
		c.member(&config.Members[w.place])
	}
	if c.cluster != nil {
		c.cluster(&config)
	}
	w.s.Write(config)
	if c.do != "" {
		w.s.Exec(w.on, "set -e\nmkdir -p /run/t\n"+c.do)
		defer w.s.Exec(w.on, "set -e\n"+c.undo+"\nrm -rf /run/t")
	}
	exit := 0
	if slices.Contains(slices.Collect(maps.Values(c.want)), "blocks") {
		exit = exitFindings
	}
	unseen := ""
	if c.want["probe-incomplete"] != "" {
		unseen = c.shows
	}
	found := w.beyond(w.look(exit, unseen))
	got := codes{}
	var said strings.Builder
	for _, f := range found {
		got[f.Code] = f.Severity
		fmt.Fprintf(&said, "%s of %s (%s): %s\n", f.Code, f.Machine, f.Severity, f.Evidence)
		if f.Machine != w.on.Name {
			t.Errorf("%s is said of %s: %s", f.Code, f.Machine, f.Evidence)
		}
	}
	if !maps.Equal(got, c.want) {
		t.Errorf("found %v, want %v:\n%s", got, c.want, said.String())
	}
	mentions(t, "the evidence", said.String(), c.shows)
}

// look runs check. A wrong exit code is told together with what was found. Where
// the computer was too busy for a section of the probe, other than the one that
// is to be unseen, it looks again.
func (w *ward) look(exit int, unseen string) []finding {
	w.t.Helper()
	var r scene.Result
	var result struct{ Findings []finding }
	for range 5 {
		r = w.s.Run("check", "--no-pairs", "-o", "json")
		w.s.Decode(r, &result)
		if !slices.ContainsFunc(result.Findings, func(f finding) bool {
			return f.Code == "probe-incomplete" && (unseen == "" || !strings.Contains(f.Evidence, unseen))
		}) {
			break
		}
	}
	if r.Code != exit {
		w.t.Errorf("check: exit code %d, want %d: %+v\n%s", r.Code, exit, result.Findings, r.Stderr)
	}
	return result.Findings
}

// beyond leaves out what the healthy machines show too.
func (w *ward) beyond(all []finding) []finding {
	var out []finding
	for _, f := range all {
		plain := f
		if plain.Evidence = ""; !w.healthy[plain] {
			out = append(out, f)
		}
	}
	return out
}

// mend gives the machine its healthy GPUs back.
func (w *ward) mend() {
	w.t.Helper()
	w.s.Write(w.config)
	if len(w.gpus.GPUs) > 0 {
		lay(w.t, w.s, w.on, w.gpus)
	}
}

// lay changes a machine's simulated GPUs as it runs.
func lay(t testing.TB, s *scene.Scene, m *machine.Machine, g gpu.Scenario) {
	t.Helper()
	layWith(t, s, m, g, "")
}

// layWith runs gpu-boot over a changed scenario in one of its modes.
func layWith(t testing.TB, s *scene.Scene, m *machine.Machine, g gpu.Scenario, mode string) {
	t.Helper()
	data, err := json.Marshal(g)
	if err != nil {
		t.Fatal(err)
	}
	s.Exec(m, "cat >/etc/lab/gpu.json <<'EOF'\n"+string(data)+"\nEOF\n/usr/lib/lab/gpu-boot"+mode)
}

// TestWhatIsWrongWithAMachine: each fault of a machine as a place for Kubernetes
// is named by its own code, and nothing else is.
func TestWhatIsWrongWithAMachine(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "ward")
	m := s.Machines(machine.Spec{Name: "a"}, machine.Spec{Name: "b"})
	w := &ward{t: t, s: s, on: m[1], place: 1, config: scene.Cluster{Members: []scene.Member{{Machine: m[0]}, {Machine: m[1]}}}}
	w.open()
	w.run(slices.Concat(systemFailures(), placeFailures(), twinFailures(s, m[0])))
}

// TestWhatIsWrongWithGPUs: each fault of GPUs and their driver is named by its
// own code, and nothing else is. The board has eight GPUs behind NVSwitches.
func TestWhatIsWrongWithGPUs(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "clinic")
	board := gpu.HGX()
	m := s.Machines(machine.Spec{Name: "a", GPU: scenario(t, board)})
	w := &ward{t: t, s: s, on: m[0], gpus: board, config: scene.Cluster{Members: []scene.Member{{Machine: m[0], GPUs: 8}}}}
	s.Exec(m[0], managed)
	w.open()
	w.run(slices.Concat(busFailures(), driverFailures(), healthFailures()))
}
