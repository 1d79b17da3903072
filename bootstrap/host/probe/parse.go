package probe

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Status is how a section ended.
type Status string

const (
	OK      Status = "ok"
	Absent  Status = "absent"
	Denied  Status = "denied"
	Timeout Status = "timeout"
	// Failed: the body ended with an exit code that has no meaning of its own.
	Failed Status = "failed"
)

// Answer is what one section brought back.
type Answer struct {
	Status Status
	// Text is the output: valid UTF-8 without control characters but newline and tab.
	Text string
	// Note is the first line of its standard error.
	Note string
}

// Output is a whole probe, taken apart.
type Output struct {
	Answers map[string]Answer
	// First and Last are the machine's clock at the start and the end of the script.
	First, Last time.Time
}

// ErrCut is returned for output whose end is missing.
var ErrCut = errors.New("the end of the probe's output is missing")

// Split takes the output of an assembled script apart. Anything before, between
// and after the framed parts (banners, motd) is ignored. It fails where nothing
// is framed, or with ErrCut where the end is missing; what was read until then
// is returned as well.
func Split(output []byte, mark string) (Output, error) {
	out := Output{Answers: map[string]Answer{}}
	if mark == "" {
		return out, errors.New("a probe needs a mark")
	}
	var open string
	var body []string
	done := false
	for _, raw := range strings.Split(string(output), "\n") {
		word, rest, marked := directive(strings.TrimRight(raw, "\r"), mark)
		switch {
		case !marked:
			if open != "" {
				body = append(body, raw)
			}
		case word == "begin":
			open, body = rest, nil
		case word == "end":
			name, tail, _ := strings.Cut(rest, " ")
			if name == open && open != "" {
				out.Answers[name] = answer(body, tail)
			}
			open = ""
		case word == "clock":
			out.stamp(rest)
		case word == "done":
			done = true
		}
	}
	if len(out.Answers) == 0 {
		return out, fmt.Errorf("no section of the probe came back: %w", ErrCut)
	}
	if !done {
		return out, ErrCut
	}
	return out, nil
}

// directive recognises a line of the frame: the mark, a word and the rest.
func directive(line, mark string) (word, rest string, ok bool) {
	after, ok := strings.CutPrefix(line, mark+" ")
	if !ok {
		return "", "", false
	}
	word, rest, _ = strings.Cut(after, " ")
	return word, rest, true
}

func answer(body []string, tail string) Answer {
	status, note, _ := strings.Cut(tail, " ")
	text := strings.Join(body, "\n")
	// The frame adds one newline so that its end stands on a line of its own.
	a := Answer{Status: Status(status), Text: Clean(text), Note: strings.TrimSpace(Clean(note))}
	if a.Status == Timeout {
		a.Note = "" // what the shell says of a process it killed
	}
	return a
}

// stamp reads nanoseconds, or whole seconds from a date(1) without %N.
func (o *Output) stamp(text string) {
	digits := strings.TrimRight(text, "N% ")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n <= 0 {
		return
	}
	t := time.Unix(n, 0).UTC()
	if len(digits) > 15 {
		t = time.Unix(0, n).UTC()
	}
	if o.First.IsZero() {
		o.First = t
	}
	o.Last = t
}

// Clean makes text from a machine safe to print: invalid UTF-8 becomes U+FFFD,
// control characters but newline and tab go, and terminal escapes with them.
func Clean(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if r == 0x1b {
			i += escapeLength(text[i:])
			continue
		}
		i += size
		if r == '\n' || r == '\t' || (r >= 0x20 && r != 0x7f && (r < 0x80 || r > 0x9f)) {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// escapeLength is the length of the terminal escape at the start of s: ESC [
// parameters and a final byte, or ESC alone.
func escapeLength(s string) int {
	if len(s) < 2 || s[1] != '[' {
		return 1
	}
	for i := 2; i < len(s); i++ {
		if s[i] >= 0x40 && s[i] <= 0x7e {
			return i + 1
		}
		if s[i] < 0x20 || s[i] > 0x3f {
			return i
		}
	}
	return len(s)
}
