package state

import (
	"encoding/xml"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/internal/event"
)

var update = flag.Bool("update", false, "write golden files")

func TestTimelineShowsWhatTookHowLong(t *testing.T) {
	d := open(t)
	begin := time.Date(2026, 12, 1, 5, 0, 0, 0, time.UTC)
	run, err := d.NewRun(begin, &Redactor{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []event.Event{
		{Time: begin, Kind: event.ActionStarted, Machine: "gpu-1", Action: "a", Text: "install <k3s>"},
		{Time: begin.Add(time.Second), Kind: event.ActionStarted, Action: "b", Text: "operator"},
		{Time: begin.Add(5 * time.Second), Kind: event.ActionDone, Action: "a"},
		{Time: begin.Add(10 * time.Second), Kind: event.ActionFailed, Action: "b"},
	} {
		run.Emit(e)
	}
	if err := run.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(run.Path(), "timeline.svg"))
	if err != nil {
		t.Fatal(err)
	}
	for decoder := xml.NewDecoder(strings.NewReader(string(data))); ; {
		if _, err := decoder.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("not XML: %v\n%s", err, data)
		}
	}
	for _, want := range []string{"10s in all", "gpu-1: install &lt;k3s&gt;", ">5s<", "cluster: operator", ">9s<", "#b3261e", "longest path: 9s in 1 of 2 actions"} {
		if !strings.Contains(string(data), want) {
			t.Errorf("%q is not in\n%s", want, data)
		}
	}
}

// A server and an agent: the agent's join waits for the server, the proof for
// the operator, and the time of the run went by that way. What was done beside
// it is not marked.
func TestTimelineMarksTheLongestPath(t *testing.T) {
	begin := time.Date(2026, 12, 1, 5, 0, 0, 0, time.UTC)
	var events []event.Event
	at := func(second float64, kind event.Kind, machine, action, text string, needs ...string) {
		events = append(events, event.Event{Time: begin.Add(time.Duration(second * float64(time.Second))), Kind: kind, Machine: machine, Action: action, Text: text, Needs: needs})
	}
	at(0, event.ActionStarted, "gpu-1", "gpu-1/host", "set kernel modules and limits")
	at(0, event.ActionStarted, "gpu-2", "gpu-2/host", "set kernel modules and limits")
	at(0.4, event.ActionDone, "gpu-1", "gpu-1/host", "")
	at(0.4, event.ActionStarted, "gpu-1", "gpu-1/k3s", "install k3s v1.34.4+k3s1 (server)", "gpu-1/host")
	at(0.7, event.ActionDone, "gpu-2", "gpu-2/host", "")
	at(0.7, event.ActionStarted, "gpu-2", "gpu-2/toolkit", "install NVIDIA Container Toolkit with a name that is longer than its place", "gpu-2/host")
	at(9, event.ActionDone, "gpu-2", "gpu-2/toolkit", "")
	at(15, event.ActionDone, "gpu-1", "gpu-1/k3s", "")
	at(15, event.ActionStarted, "gpu-2", "gpu-2/k3s", "install k3s <agent>", "gpu-2/toolkit", "gpu-1/k3s")
	at(15, event.ActionStarted, "", "operator", "install GPU Operator", "gpu-1/k3s")
	at(25, event.ActionFailed, "gpu-2", "gpu-2/k3s", "")
	at(42, event.ActionDone, "", "operator", "")
	at(42, event.ActionStarted, "gpu-1", "gpu-1/smoke", "prove 2 GPUs", "operator")
	at(44, event.ActionStarted, "gpu-1", "gpu-1/labels", "set labels")
	at(53, event.ActionDone, "gpu-1", "gpu-1/smoke", "")
	at(53, event.RunFinished, "", "", "")
	var drawn timeline
	for _, e := range events {
		drawn.add(e)
	}
	got := drawn.svg(begin.Add(53 * time.Second))
	if *update {
		if err := os.WriteFile("testdata/timeline.svg", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/timeline.svg")
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("testdata/timeline.svg differs (run with -update if this is meant):\n%s", got)
	}
	var bold []string
	for line := range strings.Lines(got) {
		if strings.Contains(line, "bold") && strings.Contains(line, colorPath) {
			bold = append(bold, line)
		}
	}
	if len(bold) != 4 || !strings.Contains(got, "longest path: 53s in 4 of 8 actions") {
		t.Errorf("%d actions are marked:\n%s", len(bold), strings.Join(bold, ""))
	}
}

// After a reboot the machine is planned anew and the next action names nothing
// that ran: it goes on from what was done last there.
func TestTheLongestPathGoesOnAfterABarrier(t *testing.T) {
	second := func(s int) time.Time { return time.Unix(int64(s), 0) }
	spans := []span{
		{action: "a/driver", machine: "a", from: second(0), to: second(60)},
		{action: "b/driver", machine: "b", from: second(0), to: second(90)},
		{action: "a/reboot", machine: "a", from: second(60), to: second(100), needs: []string{"a/driver"}},
		{action: "a/toolkit", machine: "a", from: second(103), to: second(110), needs: []string{"a/gone"}},
		{action: "a/late", machine: "a", from: second(103), to: second(109)},
	}
	if got := longest(spans); !slices.Equal(got, []int{0, 2, 3}) {
		t.Errorf("got %v", got)
	}
}

func TestARunWithoutActionsDrawsNothing(t *testing.T) {
	run, err := open(t).NewRun(time.Now(), &Redactor{})
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(run.Path(), "timeline.svg")); !os.IsNotExist(err) {
		t.Errorf("drawn: %v", err)
	}
}
