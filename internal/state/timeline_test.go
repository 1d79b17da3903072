package state

import (
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/internal/event"
)

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
	for _, want := range []string{"10s in all", "gpu-1: install &lt;k3s&gt;", ">5s<", "cluster: operator", ">9s<", "#b3261e"} {
		if !strings.Contains(string(data), want) {
			t.Errorf("%q is not in\n%s", want, data)
		}
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
