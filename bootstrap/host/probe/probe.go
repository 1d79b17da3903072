// Package probe is the frame in which facts about a machine come back: one
// script runs named sections at once, each with its own limit, and prints
// their output between lines that begin with a random mark.
package probe

import (
	_ "embed"
	"fmt"
	"strings"
	"time"
)

// Section is one independent part of a probe.
type Section struct {
	// Name is lower-case letters only.
	Name string
	// Limit bounds the section, in whole seconds.
	Limit time.Duration
	// Body is POSIX sh that runs in its own shell with the probe's arguments
	// (without the mark) as $1, $2, ... Exit code 0 means ok, ExitAbsent that
	// the thing is not there, ExitDenied that it may not be seen.
	Body string
}

// Exit codes of a section's body with a meaning of their own.
const (
	ExitDenied = 43
	ExitAbsent = 44
)

//go:embed frame.sh
var frame string

// Assemble makes the script that runs the sections. The first argument of the
// script is the mark, the others go to every section.
func Assemble(sections []Section) string {
	var b strings.Builder
	for _, s := range sections {
		fmt.Fprintf(&b, "section %s %d '%s' \"$@\"\n", s.Name, int(s.Limit.Seconds()), strings.ReplaceAll(squeeze(s.Body), "'", `'\''`))
	}
	return strings.Replace(squeeze(frame), "#SECTIONS#\n", b.String(), 1)
}

// squeeze drops comments and indentation: the script goes up to every machine
// in every run. None of the sources holds a here-document or a continued line
// that this would change.
func squeeze(source string) string {
	var b strings.Builder
	for _, line := range strings.Split(source, "\n") {
		line = strings.TrimLeft(line, " \t")
		if line == "" || (strings.HasPrefix(line, "#") && line != "#SECTIONS#") {
			continue
		}
		b.WriteString(line)
		b.WriteByte('\n')
	}
	return b.String()
}

// Longest is the time after which the script has answered, whatever hangs.
func Longest(sections []Section) time.Duration {
	var longest time.Duration
	for _, s := range sections {
		longest = max(longest, s.Limit)
	}
	return longest + 3*time.Second
}
