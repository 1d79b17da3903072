package spread

import (
	"bytes"
	"context"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/plan"
)

// stream is the input of lay.sh: nothing until the machine has said where to go
// on, then the rest of the file. It is the script's output too, to hear that.
type stream struct {
	ctx  context.Context //nolint:containedctx // a reader has no other way to end
	stop context.CancelFunc
	file File
	say  plan.Say

	mu     sync.Mutex // guards what the script said
	said   bytes.Buffer
	offset int64
	heard  bool
	start  chan struct{}

	body io.ReadCloser
	sent int64
	told time.Time
	err  error
}

func newStream(ctx context.Context, f File, say plan.Say) *stream {
	ctx, stop := context.WithCancel(ctx)
	return &stream{ctx: ctx, stop: stop, file: f, say: say, start: make(chan struct{})}
}

// end lets a reader go that still waits. It may come before the last Read returns.
func (s *stream) end() { s.stop() }

func (s *stream) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (s *stream) from() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.offset
}

// Write hears what the script says.
func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.heard {
		return len(p), nil
	}
	s.said.Write(p[:min(len(p), max(0, 200-s.said.Len()))])
	line, _, whole := strings.Cut(s.said.String(), "\n")
	if !whole {
		return len(p), nil
	}
	s.heard = true
	if at, ok := strings.CutPrefix(line, "at "); ok {
		s.offset, _ = strconv.ParseInt(strings.TrimSpace(at), 10, 64)
		close(s.start)
	}
	return len(p), nil
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	if s.body == nil {
		select {
		case <-s.start:
		case <-s.ctx.Done():
			return 0, io.EOF
		}
		if err := s.open(); err != nil {
			return 0, io.EOF // the script finds the checksum wrong; failed says why
		}
	}
	n, err := s.body.Read(p)
	s.sent += int64(n)
	s.progress()
	if err != nil {
		_ = s.body.Close() // it was only read
		if err != io.EOF {
			s.fail(err)
			err = io.EOF
		}
	}
	return n, err
}

func (s *stream) open() error {
	s.sent = s.from()
	if s.sent > 0 {
		s.say("going on with %s after %s", s.file.Name, Bytes(s.sent))
	}
	body, err := s.file.Open(s.ctx, s.sent)
	if err != nil {
		s.fail(err)
		return err
	}
	s.body, s.told = body, time.Now()
	return nil
}

func (s *stream) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// progress says how far it is, every few seconds.
func (s *stream) progress() {
	if time.Since(s.told) < 5*time.Second {
		return
	}
	s.told = time.Now()
	if s.file.Size > 0 {
		s.say("sending %s: %s of %s", s.file.Name, Bytes(s.sent), Bytes(s.file.Size))
	} else {
		s.say("sending %s: %s", s.file.Name, Bytes(s.sent))
	}
}

// Bytes is a size for people: "1.4 GB".
func Bytes(n int64) string {
	units := []string{"bytes", "kB", "MB", "GB", "TB"}
	v, i := float64(n), 0
	for v >= 1000 && i < len(units)-1 {
		v, i = v/1000, i+1
	}
	if i == 0 {
		return strconv.FormatInt(n, 10) + " bytes"
	}
	return strconv.FormatFloat(v, 'f', 1, 64) + " " + units[i]
}
