package ui

import (
	"fmt"
	"io"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/gpuctl/gpuctl/internal/event"
)

// Size is a terminal's size in cells.
type Size struct{ Width, Height int }

// Live shows one line per working machine below the lines of what is finished.
// The view is drawn anew with every event and once a second.
type Live struct {
	lines
	w    io.Writer
	size func() Size
	now  func() time.Time

	mu      sync.Mutex
	running map[string]work // by action
	drawn   int             // lines of the view on the screen
	closed  bool
	stop    chan struct{}
	stopped sync.WaitGroup
}

// work is an action that runs.
type work struct {
	machine, title, waits string
	since                 time.Time
}

// NewLive draws on the terminal w, whose size is asked before every drawing.
// Close must be called before anything else writes there.
func NewLive(w io.Writer, style Style, machines []string, verbose bool, size func() Size) *Live {
	l := newLive(w, style, machines, verbose, size, time.Now)
	l.stopped.Add(1)
	go l.tick()
	return l
}

func newLive(w io.Writer, style Style, machines []string, verbose bool, size func() Size, now func() time.Time) *Live {
	return &Live{lines: newLines(style, machines, verbose), w: w, size: size, now: now,
		running: map[string]work{}, stop: make(chan struct{})}
}

func (l *Live) tick() {
	defer l.stopped.Done()
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-t.C:
			l.mu.Lock()
			l.draw("")
			l.mu.Unlock()
		}
	}
}

// Emit moves the view and prints what is finished above it.
func (l *Live) Emit(e event.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch e.Kind {
	case event.ActionStarted:
		if l.closed {
			break
		}
		l.running[e.Action] = work{machine: oneLine(e.Machine), title: oneLine(e.Text), since: l.now()}
		l.draw("")
		return
	case event.ActionProgress:
		if w, ok := l.running[e.Action]; ok {
			w.waits = oneLine(e.Text)
			l.running[e.Action] = w
		}
		l.draw("")
		return
	case event.ActionDone, event.ActionFailed, event.ActionBlocked:
		delete(l.running, e.Action)
	}
	l.draw(l.line(e))
}

// Close takes the view off the screen and stops drawing. Later events are
// printed as lines.
func (l *Live) Close() {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return
	}
	l.closed = true
	l.running = map[string]work{}
	l.draw("")
	l.mu.Unlock()
	close(l.stop)
	l.stopped.Wait()
}

// draw replaces the view in one write, so that nothing flickers: up to its first
// line, clear, print what is finished, print the view.
func (l *Live) draw(finished string) {
	view := l.view()
	var b strings.Builder
	if l.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\r\x1b[J", l.drawn)
	}
	b.WriteString(finished)
	for _, line := range view {
		b.WriteString(line + "\n")
	}
	l.drawn = len(view)
	if b.Len() > 0 {
		_, _ = io.WriteString(l.w, b.String())
	}
}

func (l *Live) view() []string {
	size := l.size()
	ids := make([]string, 0, len(l.running))
	for id := range l.running {
		ids = append(ids, id)
	}
	sort.Slice(ids, func(i, j int) bool {
		a, b := l.running[ids[i]], l.running[ids[j]]
		if a.machine != b.machine {
			return a.machine < b.machine
		}
		return ids[i] < ids[j]
	})
	most := max(size.Height-2, 1)
	var out []string
	for i, id := range ids {
		if i == most-1 && len(ids) > most {
			out = append(out, ansi.Truncate(fmt.Sprintf("... and %d more", len(ids)-i), size.Width-1, "…"))
			break
		}
		out = append(out, l.workLine(l.running[id], size.Width-1))
	}
	return out
}

// workLine fits machine, title, elapsed time and what is waited for into width.
// A line that wrapped would spoil the count of lines to go up.
func (l *Live) workLine(w work, width int) string {
	machine := w.machine
	if machine == "" {
		machine = "cluster"
	}
	elapsed := Duration(l.now().Sub(w.since).Truncate(time.Second))
	if l.now().Sub(w.since) < 10*time.Second {
		elapsed = fmt.Sprintf("%ds", int(l.now().Sub(w.since).Seconds()))
	}
	line := pad(machine, l.width) + "  " + pad(elapsed, 6) + " " + w.title
	if w.waits != "" {
		line += l.dim(": " + w.waits)
	}
	return ansi.Truncate(line, max(width, 1), "…")
}
