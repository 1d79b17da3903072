package ui

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/event"
)

// wordWidth holds the longest word of a line: "connected".
const wordWidth = 9

// lines writes events as lines: machine, word, text.
type lines struct {
	Style
	// width is that of the machine column.
	width   int
	verbose bool
	// cut shortens names that are wider than the column.
	cut bool
}

func newLines(style Style, machines []string, verbose bool) lines {
	width := len("cluster")
	for _, m := range machines {
		width = max(width, ansi.StringWidth(m))
	}
	return lines{Style: style, width: width, verbose: verbose}
}

// line is the event's line with its line break, or "" for an event without one.
func (l lines) line(e event.Event) string {
	switch e.Kind {
	case event.RunStarted, event.ActionPending:
		return ""
	case event.MachineConnected:
		return l.format(e, l.dim("connected"), e.Text)
	case event.MachineObserved:
		return l.format(e, l.dim("observed"), e.Text)
	case event.MachineFailed:
		return l.format(e, l.red("failed"), e.Error)
	case event.FindingRaised:
		return l.finding(e)
	case event.PlanMade:
		return l.format(e, "plan", e.Text)
	case event.ActionStarted:
		return l.format(e, l.dim("start"), e.Text)
	case event.ActionProgress:
		return l.format(e, l.dim("waits"), e.Text)
	case event.ActionDone:
		return l.format(e, l.green("done"), e.Text+took(e))
	case event.ActionFailed:
		return l.format(e, l.red("failed"), e.Text+took(e)+": "+e.Error)
	case event.ActionBlocked:
		return l.format(e, l.yellow("blocked"), e.Text+why(e))
	case event.RunFinished:
		if e.Error != "" {
			return l.format(e, l.red("failed"), e.Text)
		}
		return l.format(e, l.green("finished"), e.Text)
	case event.Note:
		return l.format(e, "note", e.Text)
	}
	return ""
}

func (l lines) finding(e event.Event) string {
	switch diag.Severity(e.Severity) {
	case diag.Blocks:
		return l.format(e, l.red("blocks"), e.Code+": "+e.Text)
	case diag.Warns:
		return l.format(e, l.yellow("warns"), e.Code+": "+e.Text)
	}
	if !l.verbose {
		return ""
	}
	return l.format(e, l.dim("informs"), e.Code+": "+e.Text)
}

func (l lines) format(e event.Event, word, text string) string {
	machine := oneLine(e.Machine)
	if machine == "" {
		machine = "cluster"
	}
	if l.cut {
		machine = ansi.Truncate(machine, l.width, "…")
	}
	margin := strings.Repeat(" ", l.width+wordWidth+4)
	return strings.TrimRight(pad(machine, l.width)+"  "+pad(word, wordWidth)+"  "+indent(Clean(text), margin), " ") + "\n"
}

func why(e event.Event) string {
	for _, s := range []string{e.Error, e.Reason} {
		if s != "" {
			return ": " + s
		}
	}
	return ""
}

func took(e event.Event) string {
	if e.Seconds < 0.05 {
		return ""
	}
	return " (" + Duration(time.Duration(e.Seconds*float64(time.Second))) + ")"
}

// Duration is a time as people read it: "0.4s", "12s", "3m05s", "1h02m".
func Duration(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.0fs", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}
