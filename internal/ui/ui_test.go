package ui

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/event"
)

func at(second int) time.Time {
	return time.Date(2026, 12, 1, 5, 0, 0, 0, time.UTC).Add(time.Duration(second) * time.Second)
}

// run is a small run as the engine tells it.
func run() []event.Event {
	return []event.Event{
		{Time: at(0), Kind: event.RunStarted, Text: "apply"},
		{Time: at(1), Kind: event.MachineConnected, Machine: "gpu-1", Text: "ubuntu@203.0.113.10:22, SHA256:abc"},
		{Time: at(2), Kind: event.MachineObserved, Machine: "gpu-1", Text: "Debian 12, 8 x H100"},
		{Time: at(2), Kind: event.MachineFailed, Machine: "gpu-12", Error: "connecting: refused"},
		{Time: at(3), Kind: event.FindingRaised, Machine: "gpu-1", Code: "small-disk", Severity: "warns", Text: "20 GiB"},
		{Time: at(3), Kind: event.FindingRaised, Machine: "gpu-1", Code: "container", Severity: "informs", Text: "lxc"},
		{Time: at(4), Kind: event.PlanMade, Text: "2 actions"},
		{Time: at(4), Kind: event.ActionStarted, Machine: "gpu-1", Action: "gpu-1/k3s", Text: "install k3s"},
		{Time: at(5), Kind: event.ActionProgress, Machine: "gpu-1", Action: "gpu-1/k3s", Text: "downloading"},
		{Time: at(15), Kind: event.ActionProgress, Machine: "gpu-1", Action: "gpu-1/k3s", Text: "node not Ready: \x1b[31mcni\x1b[0m\x07"},
		{Time: at(17), Kind: event.ActionDone, Machine: "gpu-1", Action: "gpu-1/k3s", Text: "install k3s", Seconds: 13},
		{Time: at(18), Kind: event.ActionFailed, Action: "chart", Text: "install GPU Operator", Seconds: 75, Error: "chart: no route\nto host"},
		{Time: at(18), Kind: event.ActionBlocked, Action: "smoke", Text: "prove gpu-1", Reason: "chart failed"},
		{Time: at(19), Kind: event.RunFinished, Text: "1 of 3 actions failed", Error: "x"},
	}
}

func TestPlain(t *testing.T) {
	var out bytes.Buffer
	p := NewPlain(&out, Style{}, []string{"gpu-1", "gpu-12"}, false)
	for _, e := range run() {
		p.Emit(e)
	}
	p.Close()
	want := `gpu-1    connected  ubuntu@203.0.113.10:22, SHA256:abc
gpu-1    observed   Debian 12, 8 x H100
gpu-12   failed     connecting: refused
gpu-1    warns      small-disk: 20 GiB
cluster  plan       2 actions
gpu-1    start      install k3s
gpu-1    waits      node not Ready: cni?
gpu-1    done       install k3s (13s)
cluster  failed     install GPU Operator (1m15s): chart: no route
                    to host
cluster  blocked    prove gpu-1: chart failed
cluster  failed     1 of 3 actions failed
`
	if out.String() != want {
		t.Errorf("got:\n%s", out.String())
	}
}

// screen is what a terminal shows after the bytes of the live view.
func screen(t *testing.T, data string) string {
	t.Helper()
	var lines []string
	for data != "" {
		if strings.HasPrefix(data, "\x1b[") {
			end := strings.IndexAny(data, "AJ")
			if end > 0 && data[end] == 'A' {
				up := 0
				for _, d := range data[2:end] {
					up = up*10 + int(d-'0')
				}
				if up > len(lines) {
					t.Fatalf("goes up %d of %d lines", up, len(lines))
				}
				lines = lines[:len(lines)-up] // \r\x1b[J clears the rest
				data = strings.TrimPrefix(data[end+1:], "\r\x1b[J")
				continue
			}
			t.Fatalf("unknown sequence in %q", data)
		}
		line, rest, _ := strings.Cut(data, "\n")
		lines = append(lines, line)
		data = rest
	}
	return strings.Join(lines, "\n")
}

func TestLive(t *testing.T) {
	var out bytes.Buffer
	now := at(4)
	l := newLive(&out, Style{}, []string{"gpu-1"}, false, func() Size { return Size{60, 24} }, func() time.Time { return now })
	events := run()
	for _, e := range events[:10] {
		now = e.Time
		l.Emit(e)
	}
	want := `gpu-1    connected  ubuntu@203.0.113.10:22, SHA256:abc
gpu-1    observed   Debian 12, 8 x H100
gpu-12   failed     connecting: refused
gpu-1    warns      small-disk: 20 GiB
cluster  plan       2 actions
gpu-1    11s    install k3s: node not Ready: cni?`
	if got := screen(t, out.String()); got != want {
		t.Errorf("while it works:\n%s", got)
	}
	for _, e := range events[10:] {
		l.Emit(e)
	}
	l.Close()
	if got := screen(t, out.String()); !strings.HasSuffix(got, "cluster  failed     1 of 3 actions failed") || strings.Contains(got, "11s") {
		t.Errorf("at the end:\n%s", got)
	}
}

func TestLiveFitsTheTerminal(t *testing.T) {
	var out bytes.Buffer
	l := newLive(&out, Style{}, nil, false, func() Size { return Size{30, 5} }, func() time.Time { return at(0) })
	for _, m := range []string{"a", "b", "c", "d", "e"} {
		l.Emit(event.Event{Kind: event.ActionStarted, Machine: m, Action: m, Text: "install a long package with a name"})
	}
	want := `a        0s     install a lo…
b        0s     install a lo…
... and 3 more`
	if got := screen(t, out.String()); got != want {
		t.Errorf("got:\n%s", got)
	}
	l.Close()
	if got := screen(t, out.String()); got != "" {
		t.Errorf("left on the screen:\n%s", got)
	}
}

func TestLiveTicksAndStops(t *testing.T) {
	l := NewLive(&bytes.Buffer{}, Style{}, nil, false, func() Size { return Size{80, 24} })
	l.Emit(event.Event{Kind: event.ActionStarted, Action: "a"})
	l.Close() // returns only when the ticker's goroutine has ended
	if len(l.running) != 0 {
		t.Error("still running")
	}
}

func TestColorIsOnlyColor(t *testing.T) {
	e := event.Event{Kind: event.ActionDone, Machine: "m", Text: "x"}
	colored := newLines(Style{Color: true}, nil, false).line(e)
	if !strings.Contains(colored, "\x1b[32mdone\x1b[0m       x") {
		t.Errorf("got %q", colored)
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"\x1b[2J\x1b]0;title\x07hi":             "hi",
		"a\rb\tc\x00":                           "a b c?",
		"user\u202egpj.exe":                     "user?gpj.exe",
		"\xff\xfe":                              "",
		"line\r\nnext":                          "line\nnext",
		"\x1b]8;;http://x\x1b\\l\x1b]8;;\x1b\\": "l",
	} {
		if got := Clean(in); got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestTableAndFindings(t *testing.T) {
	var out bytes.Buffer
	if err := Table(&out, [][]string{{"NAME", "GPUS"}, {"gpu-1", "8"}, {"überlang", "\x1b[1m0"}}); err != nil {
		t.Fatal(err)
	}
	if want := "NAME      GPUS\ngpu-1     8\nüberlang  0\n"; out.String() != want {
		t.Errorf("got:\n%s", out.String())
	}
	out.Reset()
	err := Findings(&out, Style{}, []diag.Finding{
		{Code: "not-in-the-catalogue", Machine: "m", Evidence: "a\nb", Severity: diag.Blocks},
		{Code: "quiet", Evidence: "c", Severity: diag.Informs},
	}, false)
	if want := "blocks m: not-in-the-catalogue\n  seen   a\n         b\n"; err != nil || out.String() != want {
		t.Errorf("got %v:\n%s", err, out.String())
	}
}
