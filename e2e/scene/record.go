package scene

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Event is a line of events.jsonl.
type Event struct {
	Kind    string `json:"kind"`
	Machine string `json:"machine"`
	Action  string `json:"action"`
	Text    string `json:"text"`
	Code    string `json:"code"`
	Error   string `json:"error"`
}

// StateDir is where gpuctl keeps what it knows of the cluster.
func (s *Scene) StateDir() string { return filepath.Join(s.Dir, "state", "gpuctl", s.Name) }

// Runs are the records of runs so far, oldest first.
func (s *Scene) Runs() []string {
	entries, err := os.ReadDir(filepath.Join(s.StateDir(), "runs"))
	if err != nil {
		return nil // no run has begun
	}
	var runs []string
	for _, e := range entries {
		runs = append(runs, filepath.Join(s.StateDir(), "runs", e.Name()))
	}
	slices.SortFunc(runs, func(a, b string) int { return started(a).Compare(started(b)) })
	return runs
}

// started is when a run began: runs of one second have names in no order.
func started(run string) time.Time {
	info, err := os.Stat(filepath.Join(run, "events.jsonl"))
	if err != nil {
		return time.Now()
	}
	return info.ModTime()
}

// Events are those of a run, as far as they are written.
func (s *Scene) Events(run string) []Event {
	s.t.Helper()
	data, err := os.ReadFile(filepath.Join(run, "events.jsonl"))
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	var events []Event
	for line := range strings.Lines(string(data)) {
		if !strings.HasSuffix(line, "\n") {
			break // the rest of it is still to come
		}
		var e Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			s.t.Fatalf("%s/events.jsonl: %v: %s", run, err, line)
		}
		events = append(events, e)
	}
	return events
}

// WaitEvents waits until the process has said enough for stop, and says whether
// it did before it ended. before is how many runs were recorded when it started.
func (p *Process) WaitEvents(before int, stop func([]Event) bool) bool {
	s := p.scene
	s.t.Helper()
	for {
		ended := false
		select {
		case <-p.done:
			ended = true
		case <-time.After(5 * time.Millisecond):
		}
		if runs := s.Runs(); len(runs) > before && stop(s.Events(runs[len(runs)-1])) {
			return true
		}
		if ended {
			return false
		}
	}
}
