// Package ui turns events and findings into text for people: plain lines, or on
// a terminal a live view with one line per machine. It writes only where it is
// told to and knows nothing of commands.
package ui

import (
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// Style is how text may look.
type Style struct {
	// Color allows ANSI colours.
	Color bool
}

func (s Style) red(t string) string    { return s.sgr("31", t) }
func (s Style) green(t string) string  { return s.sgr("32", t) }
func (s Style) yellow(t string) string { return s.sgr("33", t) }
func (s Style) dim(t string) string    { return s.sgr("2", t) }

func (s Style) sgr(code, t string) string {
	if !s.Color || t == "" {
		return t
	}
	return "\x1b[" + code + "m" + t + "\x1b[0m"
}

// Clean makes text that came from a machine safe to print: no escape sequence
// and no control character reaches the terminal, nor a character that reverses
// the direction of text. Line breaks stay.
func Clean(text string) string {
	text = ansi.Strip(strings.ReplaceAll(text, "\r\n", "\n"))
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case r == '\t' || r == '\r':
			return ' '
		case unicode.IsControl(r), r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f, r == unicode.ReplacementChar:
			return '?'
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}

// oneLine is Clean on one line.
func oneLine(text string) string {
	return strings.Join(strings.Fields(Clean(text)), " ")
}

// pad fills text with blanks to a width in terminal cells.
func pad(text string, width int) string {
	if n := width - ansi.StringWidth(text); n > 0 {
		return text + strings.Repeat(" ", n)
	}
	return text
}

// indent puts later lines of text under its first.
func indent(text, by string) string {
	return strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n"+by)
}
