package bundle

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A download whose line breaks goes on where it was, also in another run.
func TestPartsGoOn(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789"), 50_000)
	var sent, asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := asked.Add(1)
		out := &counted{ResponseWriter: w, sent: &sent}
		if n == 1 {
			out.limit = 200_000
		}
		http.ServeContent(out, r, "", time.Time{}, bytes.NewReader(data))
	}))
	defer server.Close()
	var told atomic.Int64
	p, err := NewParts(filepath.Join(t.TempDir(), "parts"), func(n int64) { told.Add(n) })
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time it is there
		if err := p.Fetch(t.Context(), server.Client(), server.URL, sumOf(data)); err != nil {
			t.Fatal(err)
		}
	}
	if !p.Has(sumOf(data), int64(len(data))) || asked.Load() != 2 || sent.Load() > int64(len(data)) || told.Load() != int64(len(data)) {
		t.Errorf("asked %d times, %d bytes for %d, told %d", asked.Load(), sent.Load(), len(data), told.Load())
	}
	// A part of something else is thrown away; what is wrong twice is an error.
	other := []byte("something else")
	if err := os.WriteFile(p.path(sumOf(other))+".part", []byte("wrong start"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.Fetch(t.Context(), server.Client(), server.URL, sumOf(other)); !errors.Is(err, errSum) {
		t.Errorf("%v", err)
	}
	if p.Has(sumOf(other), 0) {
		t.Error("a wrong file got its name")
	}
	missing := httptest.NewServer(http.NotFoundHandler())
	defer missing.Close()
	if err := p.Fetch(t.Context(), missing.Client(), missing.URL, strings.Repeat("0", 64)); !errors.Is(err, errStatus) {
		t.Errorf("%v", err)
	}
	if err := p.Remove(); err != nil {
		t.Error(err)
	}
}

// counted counts what is sent and breaks the line at a limit.
type counted struct {
	http.ResponseWriter
	sent  *atomic.Int64
	limit int
}

func (c *counted) Write(b []byte) (int, error) {
	if c.limit > 0 && len(b) > c.limit {
		n, _ := c.ResponseWriter.Write(b[:c.limit])
		c.sent.Add(int64(n))
		panic(http.ErrAbortHandler)
	}
	c.limit = max(0, c.limit-len(b)) + min(c.limit, 1)
	n, err := c.ResponseWriter.Write(b)
	c.sent.Add(int64(n))
	return n, err
}
