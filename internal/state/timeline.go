package state

import (
	"fmt"
	"html"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/internal/event"
)

// timeline draws when each action of a run began and ended: what the run's wall
// time was spent on.
type timeline struct {
	spans []span
	open  map[string]int // action -> index of its span that has not ended
}

type span struct {
	machine, title, result string
	from, to               time.Time
}

func (t *timeline) add(e event.Event) {
	switch e.Kind {
	case event.ActionStarted:
		if t.open == nil {
			t.open = map[string]int{}
		}
		t.open[e.Action] = len(t.spans)
		t.spans = append(t.spans, span{machine: e.Machine, title: e.Text, from: e.Time})
	case event.ActionDone, event.ActionFailed:
		if i, ok := t.open[e.Action]; ok {
			t.spans[i].to, t.spans[i].result = e.Time, string(e.Kind)
			delete(t.open, e.Action)
		}
	}
}

// Sizes of the drawing, in pixels.
const (
	rowHeight  = 18
	labelWidth = 420
	barsWidth  = 700
)

// svg is the drawing; what had not ended when the run did reaches to the end.
func (t *timeline) svg(end time.Time) string {
	begin := t.spans[0].from
	for _, s := range t.spans {
		if s.from.Before(begin) {
			begin = s.from
		}
	}
	total := max(end.Sub(begin), time.Second)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n",
		labelWidth+barsWidth+80, (len(t.spans)+2)*rowHeight)
	fmt.Fprintf(&b, `<text x="4" y="13">%s in all, from %s</text>`+"\n", total.Round(100*time.Millisecond), begin.UTC().Format(time.RFC3339))
	for i, s := range t.spans {
		color := "#3a7d44"
		switch s.result {
		case "":
			color, s.to = "#b58900", end
		case string(event.ActionFailed):
			color = "#b3261e"
		}
		machine := s.machine
		if machine == "" {
			machine = "cluster"
		}
		y := (i + 1) * rowHeight
		x := labelWidth + barsWidth*int(s.from.Sub(begin)/time.Millisecond)/int(total/time.Millisecond)
		width := max(barsWidth*int(s.to.Sub(s.from)/time.Millisecond)/int(total/time.Millisecond), 1)
		fmt.Fprintf(&b, `<text x="4" y="%d">%s</text>`, y+13, html.EscapeString(machine+": "+s.title))
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s"/>`, x, y+3, width, rowHeight-6, color)
		fmt.Fprintf(&b, `<text x="%d" y="%d">%s</text>`+"\n", x+width+4, y+13, s.to.Sub(s.from).Round(100*time.Millisecond))
	}
	b.WriteString("</svg>\n")
	return b.String()
}
