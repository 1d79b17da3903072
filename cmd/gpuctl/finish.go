package main

import (
	"errors"
	"io"

	"github.com/gpuctl/gpuctl/bootstrap"
	"github.com/gpuctl/gpuctl/internal/diag"
)

// finish keeps the report, prints the result and returns the command's own
// error, which decides the exit code.
func (s *session) finish(result any, err error, text func(io.Writer) error) error {
	s.progress.Close() // the live view goes before the result comes
	if s.record != nil {
		err = errors.Join(err, s.record.WriteReport(result))
	}
	return errors.Join(err, s.show(result, text))
}

// blocked is err, or the error of findings that block where err says nothing.
func blocked(err error, findings []diag.Finding) error {
	if err != nil || !diag.AnyBlocks(findings) {
		return err
	}
	var blocking []diag.Finding
	for _, f := range findings {
		if f.Severity == diag.Blocks {
			blocking = append(blocking, f)
		}
	}
	return &bootstrap.BlockedError{Findings: blocking}
}
