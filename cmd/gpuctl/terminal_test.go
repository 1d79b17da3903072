package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap"
	"github.com/gpuctl/gpuctl/internal/event"
	"github.com/gpuctl/gpuctl/internal/ui"
)

// A terminal gets the live view and colours, unless they are not wanted; what is
// no terminal gets neither.
func TestTerminalAndColours(t *testing.T) {
	const up, green = "\x1b[1A\r\x1b[J", "\x1b[32m"
	for _, tc := range []struct {
		name          string
		terminal      bool
		args          []string
		noColor       string
		live, colours bool
	}{
		{"a terminal", true, nil, "", true, true},
		{"--no-color", true, []string{"--no-color"}, "", true, false},
		{"NO_COLOR", true, nil, "1", true, false},
		{"a pipe", false, nil, "", false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "gpuctl.yaml")
			if err := os.WriteFile(file, []byte(twoMachines), 0o600); err != nil {
				t.Fatal(err)
			}
			t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
			t.Setenv("NO_COLOR", tc.noColor)
			f := &fakeEngine{t: t}
			var out, errOut bytes.Buffer
			code := run(append([]string{"-f", file, "check"}, tc.args...), app{
				in: strings.NewReader(""), out: &out, err: &errOut, terminal: terminals{err: tc.terminal},
				size: func() ui.Size { return ui.Size{Width: 80, Height: 24} },
				newEngine: func(d engineDeps) (Engine, error) {
					f.check = func(context.Context, bootstrap.CheckOptions) (bootstrap.CheckResult, error) {
						d.Sink.Emit(event.Event{Kind: event.ActionStarted, Machine: "gpu-1", Action: "a", Text: "install k3s"})
						d.Sink.Emit(event.Event{Kind: event.ActionDone, Machine: "gpu-1", Action: "a", Text: "install k3s"})
						return bootstrap.CheckResult{Cluster: "lab"}, nil
					}
					return f, nil
				},
			})
			if code != 0 || strings.Contains(out.String(), "\x1b") {
				t.Errorf("exit code %d, result %q", code, out.String())
			}
			if got := errOut.String(); strings.Contains(got, up) != tc.live || strings.Contains(got, green) != tc.colours || !strings.Contains(got, "install k3s") {
				t.Errorf("progress %q", got)
			}
		})
	}
}
