package ui

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// terminal is a screen with what has scrolled off it, as far as the live view
// uses one: text, line breaks, cursor up, clear to the end, colours. It breaks
// lines that are too long, and breaks them anew when its width changes.
type terminal struct {
	t      *testing.T
	width  int
	height int
	// lines are whole lines, broken only where they are shown; the last one is the cursor's.
	lines []string
}

func (s *terminal) write(data string) {
	for data != "" {
		switch {
		case strings.HasPrefix(data, "\x1b["):
			end := strings.IndexFunc(data[2:], func(r rune) bool { return r >= '@' && r <= '~' }) + 2
			s.control(data[2:end], data[end])
			data = data[end+1:]
		case data[0] == '\r':
			data = data[1:]
		case data[0] == '\n':
			s.lines = append(s.lines, "")
			data = data[1:]
		default:
			r, size := utf8.DecodeRuneInString(data)
			if r < ' ' {
				s.t.Fatalf("control character %q", r)
			}
			s.lines[len(s.lines)-1] += string(r)
			data = data[size:]
		}
	}
}

func (s *terminal) control(parameter string, final byte) {
	switch final {
	case 'A':
		up := 0
		for _, d := range parameter {
			up = up*10 + int(d-'0')
		}
		if up > s.height-1 {
			s.t.Errorf("goes up %d rows on a screen of %d", up, s.height)
		}
		if s.lines[len(s.lines)-1] != "" {
			s.t.Errorf("goes up from within %q", s.lines[len(s.lines)-1])
		}
		for up > 0 {
			s.lines = s.lines[:len(s.lines)-1] // what is below is cleared next
			if len(s.lines) == 0 {
				s.t.Fatalf("goes up above the first line")
			}
			up -= s.rowsOf(s.lines[len(s.lines)-1])
		}
		if up < 0 {
			s.t.Errorf("goes up into the middle of a broken line: %q", s.lines[len(s.lines)-1])
		}
		s.lines[len(s.lines)-1] = ""
	case 'J', 'm': // up is always followed by a clearing, and a colour takes no cell
	default:
		s.t.Fatalf("unknown sequence %q%c", parameter, final)
	}
}

func (s *terminal) rowsOf(line string) int {
	return max((ansi.StringWidth(line)+s.width-1)/s.width, 1)
}

// rows is what is seen, broken at the width.
func (s *terminal) rows() string {
	var out []string
	for _, line := range s.lines[:len(s.lines)-1] {
		out = append(out, strings.Split(ansi.Hardwrap(line, s.width, true), "\n")...)
	}
	return strings.Join(out, "\n") + "\n"
}
