package remote

import (
	"context"
	"io"
	"time"
)

// Alive writes a line to out now and for every beat, and closes it at the end: when
// ctx is over, or when nobody reads any more. A script that reads it as its standard
// input knows by it that the client lives.
func Alive(ctx context.Context, out io.WriteCloser, beat time.Duration) {
	defer func() { _ = out.Close() }() // a pipe in memory
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		if _, err := io.WriteString(out, "alive\n"); err != nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
