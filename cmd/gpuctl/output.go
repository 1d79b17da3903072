package main

import (
	"encoding/json"
	"fmt"
	"io"
)

// show prints a result on standard output: v as JSON, or what text writes.
func (a *app) show(v any, text func(io.Writer) error) error {
	a.printed = true
	if !a.json() {
		return text(a.out)
	}
	enc := json.NewEncoder(a.out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("printing the result: %w", err)
	}
	return nil
}

// command is a command line to type next, with the file where it is not the usual one.
func (a *app) command(words string) string {
	line := "gpuctl " + words
	if a.flags.file != "gpuctl.yaml" {
		line += " -f " + a.flags.file
	}
	return line
}

// writer remembers the first error, so that a page of text is checked once.
type writer struct {
	w       io.Writer
	err     error
	written bool
}

func (w *writer) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	w.written = w.written || len(p) > 0
	n, err := w.w.Write(p)
	w.err = err
	return n, err
}

func (w *writer) linef(format string, args ...any) {
	_, _ = fmt.Fprintf(w, format+"\n", args...) // the error stays in w
}

// gap sets what follows apart from what was written before.
func (w *writer) gap() {
	if w.written {
		w.linef("")
	}
}

func (w *writer) do(err error) {
	if w.err == nil {
		w.err = err
	}
}
