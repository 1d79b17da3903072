package sshconn

import (
	"bytes"
	"strings"
)

// frames cuts one output stream of the machine along the marks: what comes
// before the first mark is noise of the login shell, what comes after the
// last belongs to nobody. Each mark is followed by a header line.
type frames struct {
	mark []byte
	// header is called for each header line.
	header func(words []string)
	// data receives what the script printed.
	data func(p []byte) error
	// noise keeps the beginning of everything that is not the script's.
	noise capture
	// live: nothing of the script's output waits for what follows, because the peer
	// may say no more until it is answered. An end mark that comes in two parts
	// then passes as output.
	live bool

	buf      []byte
	inHeader bool
	kind     string
	ended    bool
}

const (
	frameRun  = "run"
	frameSudo = "sudo"
	frameEnd  = "end"
	// noiseLimit bounds what is kept of foreign output.
	noiseLimit = 4 << 10
)

// feed takes the next bytes of the stream.
func (f *frames) feed(p []byte) error {
	f.buf = append(f.buf, p...)
	for {
		if f.inHeader {
			i := bytes.IndexByte(f.buf, '\n')
			if i < 0 {
				return nil
			}
			words := strings.Fields(string(f.buf[:i]))
			f.buf = f.buf[i+1:]
			f.inHeader = false
			f.kind = ""
			if len(words) > 0 {
				f.kind = words[0]
				f.ended = f.ended || f.kind == frameEnd
				f.header(words)
			}
			continue
		}
		i := bytes.Index(f.buf, f.mark)
		if i >= 0 {
			if err := f.payload(f.buf[:i]); err != nil {
				return err
			}
			f.buf = f.buf[i+len(f.mark):]
			f.inHeader = true
			continue
		}
		keep := heldBack(f.buf, f.mark)
		if f.live && f.kind == frameRun {
			keep = 0
		}
		err := f.payload(f.buf[:len(f.buf)-keep])
		f.buf = append(f.buf[:0], f.buf[len(f.buf)-keep:]...)
		return err
	}
}

// finish hands out what was held back when the stream ended without a mark.
func (f *frames) finish() error {
	if f.inHeader {
		return nil
	}
	err := f.payload(f.buf)
	f.buf = nil
	return err
}

func (f *frames) payload(p []byte) error {
	switch {
	case len(p) == 0 || f.ended:
		return nil
	case f.kind == frameRun:
		return f.data(p)
	}
	_ = f.noise.add(p) // more than the limit is not needed
	return nil
}

// heldBack is the length of the longest end of buf with which mark begins.
func heldBack(buf, mark []byte) int {
	for n := min(len(buf), len(mark)-1); n > 0; n-- {
		if bytes.HasPrefix(mark, buf[len(buf)-n:]) {
			return n
		}
	}
	return 0
}
