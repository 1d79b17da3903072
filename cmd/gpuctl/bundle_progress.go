package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/spread"
	"github.com/gpuctl/gpuctl/internal/bundle"
)

// bytesTold says every few seconds how far something is.
type bytesTold struct {
	w     io.Writer
	what  string
	total int64

	mu   sync.Mutex
	done int64
	last time.Time
}

func (t *bytesTold) add(n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done += n
	t.tell()
}

func (t *bytesTold) set(n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done = n
	t.tell()
}

func (t *bytesTold) tell() {
	if time.Since(t.last) < 5*time.Second {
		return
	}
	t.last = time.Now()
	_, _ = fmt.Fprintf(t.w, "%s: %s of about %s\n", t.what, spread.Bytes(t.done), spread.Bytes(t.total)) // progress that nobody reads is no failure
}

// openBundle opens the bundle of a run; nil where none is named. A run that changes nothing does without one that is not there.
func (s *session) openBundle(n need) (*bundle.Bundle, error) {
	file := s.flags.bundle
	if file == "" {
		file = s.config.Spec.Sources.Bundle
	}
	if file == "" {
		return nil, nil
	}
	b, err := bundle.Open(file)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !n.lock && s.flags.bundle == "":
		return nil, nil
	case err != nil && !errors.Is(err, bundle.ErrBundle):
		return nil, &usageError{err}
	}
	return b, err
}
