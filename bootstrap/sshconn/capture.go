package sshconn

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
)

// inputReader remembers a read error, which io.Copy does not tell from a write error.
type inputReader struct {
	r   io.Reader
	err error
}

func (i *inputReader) Read(p []byte) (int, error) {
	n, err := i.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		i.err = err
	}
	return n, err
}

// capture keeps one stream up to a limit.
type capture struct {
	name  string
	limit int
	mu    sync.Mutex
	buf   bytes.Buffer
}

func (c *capture) add(p []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	room := c.limit - c.buf.Len()
	c.buf.Write(p[:min(room, len(p))])
	if len(p) > room {
		return fmt.Errorf("%s is longer than %d bytes", c.name, c.limit)
	}
	return nil
}

func (c *capture) bytes() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Clone(c.buf.Bytes())
}
