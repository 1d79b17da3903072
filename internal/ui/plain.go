package ui

import (
	"io"
	"sync"
	"time"

	"github.com/gpuctl/gpuctl/internal/event"
)

// quiet is how long an action says nothing new before its progress is worth a line.
const quiet = 10 * time.Second

// Plain prints one line per event, for logs and pipes.
type Plain struct {
	lines
	w io.Writer

	mu sync.Mutex
	// spoken is when an action's last line was printed, by the event's own time.
	spoken map[string]time.Time
}

// NewPlain prints to w. Machines are the names to expect, for the column's width.
func NewPlain(w io.Writer, style Style, machines []string, verbose bool) *Plain {
	return &Plain{lines: newLines(style, machines, verbose), w: w, spoken: map[string]time.Time{}}
}

// Emit prints the event. What an action waits for is printed every ten seconds
// at most, or always when verbose.
func (p *Plain) Emit(e event.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.Kind == event.ActionProgress && !p.verbose && e.Time.Sub(p.spoken[e.Action]) < quiet {
		return
	}
	text := p.line(e)
	if text == "" {
		return
	}
	p.spoken[e.Action] = e.Time
	// A reader that went away (a closed pipe) does not stop the run.
	_, _ = io.WriteString(p.w, text)
}

// Close does nothing: every line is out already.
func (p *Plain) Close() {}
