package ui

import (
	"fmt"
	"io"
	"slices"
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
	running []work
	drawn   []int // the widths of the view's lines on the screen
	closed  bool
	stop    chan struct{}
	stopped sync.WaitGroup
}

// work is an action that runs.
type work struct {
	id, machine, title, waits string
	since                     time.Time
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
	return &Live{lines: newLines(style, machines, verbose), w: w, size: size, now: now, stop: make(chan struct{})}
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
	at := slices.IndexFunc(l.running, func(w work) bool { return w.id == e.Action })
	switch e.Kind {
	case event.ActionStarted:
		if l.closed {
			break
		}
		l.running = append(l.running, work{id: e.Action, machine: oneLine(e.Machine), title: oneLine(e.Text), since: l.now()})
		l.draw("")
		return
	case event.ActionProgress:
		if at >= 0 {
			l.running[at].waits = oneLine(e.Text)
		}
		l.draw("")
		return
	case event.ActionDone, event.ActionFailed, event.ActionBlocked:
		if at >= 0 {
			l.running = slices.Delete(l.running, at, at+1)
		}
	}
	l.draw(l.fitted(l.size()).line(e))
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
	l.running = nil
	l.draw("")
	l.mu.Unlock()
	close(l.stop)
	l.stopped.Wait()
}

// draw replaces the view in one write, so that nothing flickers: up to its first
// line, clear, print what is finished, print the view.
func (l *Live) draw(finished string) {
	size := l.size()
	view := l.view(size)
	var b strings.Builder
	if up := l.rows(size); up > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\r\x1b[J", up)
	}
	b.WriteString(finished)
	l.drawn = l.drawn[:0]
	for _, line := range view {
		b.WriteString(line + "\n")
		l.drawn = append(l.drawn, ansi.StringWidth(line))
	}
	if b.Len() > 0 {
		_, _ = io.WriteString(l.w, b.String())
	}
}

// rows is how many rows of the screen the view takes now. A terminal that was
// made narrower since has broken its lines anew.
func (l *Live) rows(size Size) int {
	rows := 0
	for _, width := range l.drawn {
		rows += max((width+size.Width-1)/size.Width, 1)
	}
	return min(rows, max(size.Height-1, 1)) // what scrolled away is out of reach
}

// narrow is the width below which what is waited for gets a row of its own.
const narrow = 60

// fitted keeps the column of machines to a fourth of the width.
func (l *Live) fitted(size Size) lines {
	out := l.lines
	room := max(size.Width/4, len("cluster"))
	out.cut = out.width > room
	out.width = min(out.width, room)
	return out
}

// view is a line per machine, the cluster's first; on a narrow terminal two,
// where there is room for them.
func (l *Live) view(size Size) []string {
	var machines []string
	of := map[string][]work{}
	for _, w := range l.running {
		if len(of[w.machine]) == 0 {
			machines = append(machines, w.machine)
		}
		of[w.machine] = append(of[w.machine], w)
	}
	slices.Sort(machines)
	most := max(size.Height-2, 1)
	apart := size.Width < narrow && 2*len(machines) <= most
	var out []string
	for i, m := range machines {
		if i == most-1 && len(machines) > most {
			out = append(out, ansi.Truncate(fmt.Sprintf("... and %d more", len(machines)-i), size.Width-1, "…"))
			break
		}
		out = append(out, l.workLines(m, of[m], size, apart)...)
	}
	return out
}

// workLines fit a machine, the time of its longest action, what it does and what
// it waits for into the terminal's width. A line that wrapped would spoil the
// count of rows to go up.
func (l *Live) workLines(machine string, all []work, size Size, apart bool) []string {
	if machine == "" {
		machine = "cluster"
	}
	width := max(size.Width-1, 1)
	column := l.fitted(size).width
	head := pad(ansi.Truncate(machine, column, "…"), column) + "  " + pad(l.elapsed(all[0].since), 6) + " "
	var title, waits []string
	for _, w := range all {
		title = append(title, w.title)
		if w.waits != "" {
			waits = append(waits, w.waits)
		}
	}
	text, reason := strings.Join(title, " + "), strings.Join(waits, "; ")
	switch {
	case reason == "":
		return []string{ansi.Truncate(head+text, width, "…")}
	case apart:
		return []string{ansi.Truncate(head+text, width, "…"), ansi.Truncate("    "+l.dim(reason), width, "…")}
	}
	// Both stay in sight: the longer one gives way.
	room := max(width-ansi.StringWidth(head), 1)
	text = ansi.Truncate(text, max(room-ansi.StringWidth(reason)-2, room/2), "…")
	return []string{ansi.Truncate(head+text+l.dim(": "+reason), width, "…")}
}

// elapsed is the time since in whole seconds: tenths would flicker.
func (l *Live) elapsed(since time.Time) string {
	d := l.now().Sub(since).Truncate(time.Second)
	if d < 10*time.Second {
		return fmt.Sprintf("%ds", int(d.Seconds()))
	}
	return Duration(d)
}
