package provision

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/gpuctl/gpuctl/internal/event"
)

// stream reads Terraform's machine-readable UI
// (https://developer.hashicorp.com/terraform/internals/machine-readable-ui): it
// keeps what a plan says and passes on as events what an apply does. Lines that
// are no JSON are a wrapper's, or a warning about the CLI's configuration, and
// are dropped. It is an io.Writer for one run.
type stream struct {
	t           Terraform
	half        []byte
	planned     []Change
	summary     Summary
	diagnostics []Diagnostic
}

// message is what we read of a line.
type message struct {
	Type       string   `json:"type"`
	Message    string   `json:"@message"`
	Changes    *Summary `json:"changes"`
	Diagnostic *struct {
		Severity string `json:"severity"`
		Summary  string `json:"summary"`
		Detail   string `json:"detail"`
		Address  string `json:"address"`
		Range    *struct {
			Filename string `json:"filename"`
			Start    struct {
				Line int `json:"line"`
			} `json:"start"`
		} `json:"range"`
	} `json:"diagnostic"`
	Change *struct {
		Resource resource `json:"resource"`
		Action   string   `json:"action"`
		Reason   string   `json:"reason"`
	} `json:"change"`
	Hook *struct {
		Resource resource `json:"resource"`
		Action   string   `json:"action"`
		Elapsed  float64  `json:"elapsed_seconds"`
		Output   string   `json:"output"`
	} `json:"hook"`
}

type resource struct {
	Address string `json:"addr"`
}

// Write takes any piece of the stream.
func (s *stream) Write(p []byte) (int, error) {
	s.half = append(s.half, p...)
	for {
		line, rest, whole := bytes.Cut(s.half, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		s.line(line)
		s.half = rest
	}
}

func (s *stream) line(line []byte) {
	var m message
	if json.Unmarshal(line, &m) != nil {
		return
	}
	switch m.Type {
	case "diagnostic":
		s.diagnostic(m)
	case "planned_change":
		if m.Change != nil && m.Change.Action != "noop" && m.Change.Action != "read" {
			s.planned = append(s.planned, Change{m.Change.Resource.Address, m.Change.Action, reasons()[m.Change.Reason]})
		}
	case "change_summary":
		if m.Changes != nil {
			s.summary = *m.Changes
		}
	default:
		if m.Hook != nil {
			s.hook(m)
		}
	}
}

func (s *stream) diagnostic(m message) {
	if m.Diagnostic == nil {
		return
	}
	d := Diagnostic{Severity: m.Diagnostic.Severity, Summary: s.t.hide(m.Diagnostic.Summary), Detail: s.t.hide(m.Diagnostic.Detail), Address: m.Diagnostic.Address}
	if r := m.Diagnostic.Range; r != nil {
		d.Place = fmt.Sprintf("%s:%d", filepath.Base(r.Filename), r.Start.Line)
	}
	s.diagnostics = append(s.diagnostics, d)
}

// hook passes on what happens to a resource.
func (s *stream) hook(m message) {
	e := event.Event{Machine: s.t.name(), Action: m.Hook.Resource.Address, Text: m.Hook.Action + " " + m.Hook.Resource.Address}
	switch m.Type {
	case "apply_start":
		e.Kind = event.ActionStarted
	case "apply_progress":
		e.Kind, e.Text = event.ActionProgress, fmt.Sprintf("%.0fs so far", m.Hook.Elapsed)
	case "provision_progress":
		e.Kind, e.Text = event.ActionProgress, s.t.hide(strings.TrimSpace(m.Hook.Output))
	case "apply_complete":
		e.Kind, e.Seconds = event.ActionDone, m.Hook.Elapsed
	case "apply_errored":
		e.Kind, e.Seconds, e.Error = event.ActionFailed, m.Hook.Elapsed, "see the error below"
	default:
		return
	}
	s.t.emit(e)
}

func (t Terraform) emit(e event.Event) {
	if t.Sink != nil {
		t.Sink.Emit(e)
	}
}

// reasons say in words why Terraform plans what it does; those not listed go without.
func reasons() map[string]string {
	return map[string]string{
		"tainted":                           "it is tainted",
		"requested":                         "a replacement was asked for",
		"cannot_update":                     "a change that cannot be made in place",
		"replace_triggered_by":              "something it depends on changed",
		"delete_because_no_resource_config": "it is in the module no more",
		"delete_because_count_index":        "the count is smaller",
		"delete_because_each_key":           "its key is gone",
		"delete_because_wrong_repetition":   "count or for_each was added or removed",
		"delete_because_no_module":          "its module is gone",
	}
}
