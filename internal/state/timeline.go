package state

import (
	"fmt"
	"html"
	"slices"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/internal/event"
)

// timeline draws when each action of a run began and ended, and the longest path
// through them: what the run's wall time was spent on.
type timeline struct {
	spans []span
	open  map[string]int // action -> index of its span that has not ended
}

// span is one action from its start to its end; to is zero for one that has none.
type span struct {
	action, machine, title string
	needs                  []string
	result                 event.Kind
	from, to               time.Time
}

func (t *timeline) add(e event.Event) {
	switch e.Kind {
	case event.ActionStarted:
		if t.open == nil {
			t.open = map[string]int{}
		}
		t.open[e.Action] = len(t.spans)
		t.spans = append(t.spans, span{action: e.Action, machine: e.Machine, title: e.Text, needs: e.Needs, from: e.Time})
	case event.ActionDone, event.ActionFailed:
		if i, ok := t.open[e.Action]; ok {
			t.spans[i].to, t.spans[i].result = e.Time, e.Kind
			delete(t.open, e.Action)
		}
	}
}

// longest is the chain of actions that the run's end waited for, as indices in
// the order of time: from the action that ended last back to what it had to wait
// for, each time the one that ended last. An action waits for those it needs;
// where it names none that ran, for the one before it on its machine, as after a
// reboot, when the machine is looked at anew.
func longest(spans []span) []int {
	if len(spans) == 0 {
		return nil
	}
	last := 0
	for i, s := range spans {
		if s.to.After(spans[last].to) {
			last = i
		}
	}
	path := []int{last}
	for at := before(spans, last); at >= 0; at = before(spans, at) {
		path = append(path, at)
	}
	slices.Reverse(path)
	return path
}

// before is the index of the action that one waited for longest, -1 for none.
func before(spans []span, of int) int {
	best := func(counts func(span) bool) int {
		found := -1
		for i, s := range spans {
			// The executor starts an action when what it needs is done, so nothing that ended later counts.
			if i == of || s.to.After(spans[of].from) || !counts(s) {
				continue
			}
			if found < 0 || s.to.After(spans[found].to) {
				found = i
			}
		}
		return found
	}
	if i := best(func(s span) bool { return slices.Contains(spans[of].needs, s.action) }); i >= 0 {
		return i
	}
	return best(func(s span) bool { return s.machine == spans[of].machine })
}

// Sizes of the drawing, in pixels.
const (
	rowHeight  = 18
	labelWidth = 420
	barsWidth  = 700
	timeWidth  = 80
)

// Colours of the bars, and of what marks the longest path.
const (
	colorDone   = "#3a7d44"
	colorFailed = "#b3261e"
	colorOpen   = "#b58900"
	colorPath   = "#0b3d91"
)

// svg is the drawing: a row per action in the order of their starts, a bar for
// its time, those of the longest path marked. It is "" for a run without actions;
// an action that had not ended when the run did reaches to the end.
func (t *timeline) svg(end time.Time) string {
	if len(t.spans) == 0 {
		return ""
	}
	spans := slices.Clone(t.spans)
	begin := spans[0].from
	for i, s := range spans {
		if s.from.Before(begin) {
			begin = s.from
		}
		if s.to.IsZero() {
			spans[i].to = end
		}
	}
	path := longest(spans)
	var onPath time.Duration
	for _, i := range path {
		onPath += spans[i].to.Sub(spans[i].from)
	}
	total := max(end.Sub(begin), time.Millisecond)
	var b strings.Builder
	width, height := labelWidth+barsWidth+timeWidth, (len(spans)+3)*rowHeight
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, `<text x="4" y="13">%s in all, from %s; longest path: %s in %d of %d actions</text>`+"\n",
		round(total), begin.UTC().Format(time.RFC3339), round(onPath), len(path), len(spans))
	axis(&b, total, height)
	for i, s := range spans {
		row(&b, s, (i+2)*rowHeight, place(s.from.Sub(begin), total), place(s.to.Sub(begin), total), slices.Contains(path, i))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// place is where a moment lies on the axis.
func place(at, total time.Duration) int {
	return labelWidth + int(float64(barsWidth)*float64(at)/float64(total))
}

// axis draws a line at every fourth of the time.
func axis(b *strings.Builder, total time.Duration, height int) {
	for i := range 5 {
		at := total * time.Duration(i) / 4
		x := place(at, total)
		fmt.Fprintf(b, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="#cccccc"/>`, x, 2*rowHeight, x, height-rowHeight)
		fmt.Fprintf(b, `<text x="%d" y="%d" fill="#666666">%s</text>`+"\n", x+2, 2*rowHeight-5, round(at))
	}
}

// row draws one action. One of the longest path stands in bold with a frame.
func row(b *strings.Builder, s span, y, from, to int, onPath bool) {
	color := map[event.Kind]string{event.ActionDone: colorDone, event.ActionFailed: colorFailed}[s.result]
	if color == "" {
		color = colorOpen
	}
	machine, weight, frame := s.machine, "", ""
	if machine == "" {
		machine = "cluster"
	}
	if onPath {
		weight, frame = ` font-weight="bold"`, fmt.Sprintf(` stroke="%s" stroke-width="3"`, colorPath)
	}
	fmt.Fprintf(b, `<text x="4" y="%d"%s>%s</text>`, y+13, weight, html.EscapeString(cut(machine+": "+s.title)))
	fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s"%s/>`, from, y+3, max(to-from, 1), rowHeight-6, color, frame)
	fmt.Fprintf(b, `<text x="%d" y="%d"%s>%s</text>`+"\n", max(to, from+1)+4, y+13, weight, round(s.to.Sub(s.from)))
}

// cut keeps a label out of the bars: 62 letters fit.
func cut(label string) string {
	if letters := []rune(label); len(letters) > 62 {
		return string(letters[:61]) + "…"
	}
	return label
}

func round(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }
