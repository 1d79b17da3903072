package bootstrap

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/internal/event"
)

// HeldError says that somebody else changes the cluster now, from another
// computer. Wait for that run, or end it: its lock goes with it.
type HeldError struct {
	// Server is the machine that keeps the lock.
	Server string
	// Holder says who has it and since when, in the other run's words; empty if it has not said so yet.
	Holder string
}

func (e *HeldError) Error() string {
	if e.Holder == "" {
		return "another gpuctl works on this cluster, as " + e.Server + " says"
	}
	return fmt.Sprintf("another gpuctl works on this cluster, as %s says: %s", e.Server, e.Holder)
}

//go:embed hold.sh
var holdScript string

const (
	// heldCode is what hold.sh ends with when somebody else has the lock: EX_TEMPFAIL of sysexits.h.
	heldCode = 75
	// holdBeat is how often a client says that it lives, holdPatience how long a server believes in one that is silent.
	holdBeat     = 15 * time.Second
	holdPatience = 60 * time.Second
	// holdFor bounds the one command that keeps the lock; after it the lock is taken anew.
	holdFor = 24 * time.Hour
)

// hold is the cluster's lock on its server: a command there that keeps a file
// lock while its input is open, so that the lock dies with the client, however
// that ends.
type hold struct {
	server remote.Runner
	name   string
	// who is the holder as others are told: who, where, since when.
	who  string
	sink event.Sink
	// beat is the time between two signs of life, again the time before the lock is taken anew.
	beat, again time.Duration
}

// lock takes the cluster's lock for a run that changes something.
func (e *Engine) lock(ctx context.Context) (context.Context, func(), error) {
	if e.want.existing() != nil {
		// No machine of somebody else's cluster is gpuctl's to keep it; Helm's own records keep two changes of a release apart.
		return ctx, func() {}, nil
	}
	server := e.want.lead(e.current())
	return hold{
		server: e.fleet.on(server.Name), name: server.Name, sink: e.settings.Sink, beat: holdBeat, again: 2 * time.Second,
		who: e.settings.Who + ", since " + time.Now().UTC().Format(time.DateTime) + " UTC",
	}.take(ctx)
}

// lockLost is why ctx ended, if it did because another run has the lock.
func lockLost(ctx context.Context) error {
	var held *HeldError
	if errors.As(context.Cause(ctx), &held) {
		return held
	}
	return nil
}

// take returns when the lock is held, with a context that ends when it is lost
// to another run; its cause is then a *HeldError. A lock that goes with its
// server's reboot is taken again. release gives it back.
func (h hold) take(ctx context.Context) (_ context.Context, release func(), err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	// The work ends before the connection does, so that the server hears of it.
	work, over := context.WithCancel(ctx)
	first, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		h.keep(ctx, work, cancel, first)
	}()
	release = func() {
		over()
		select {
		case <-ended:
		case <-time.After(2 * time.Second): // the connection is gone; so will the lock be
		}
		cancel(nil)
		<-ended
	}
	if err := <-first; err != nil {
		release()
		return ctx, func() {}, err
	}
	return ctx, release, nil
}

// keep holds the lock, again and again where the connection goes, until work is
// over. first is told how the first try came out.
func (h hold) keep(ctx, work context.Context, cancel context.CancelCauseFunc, first chan<- error) {
	var once sync.Once
	var told atomic.Bool
	tell := func(err error) { once.Do(func() { told.Store(true); first <- err }) }
	for {
		err := h.once(ctx, work, func() { tell(nil) })
		var held *HeldError
		var cut *remote.CutOffError
		var connect *remote.ConnectError
		switch {
		case work.Err() != nil:
			tell(work.Err())
			return
		case errors.As(err, &held):
			tell(held)
			cancel(held)
			return
		case errors.As(err, &connect) && !told.Load():
			// Connecting has its own patience, and nothing has begun yet.
			tell(fmt.Errorf("%s, which keeps the cluster's lock: %w", h.name, connect))
			return
		case err != nil && !errors.As(err, &cut) && !errors.As(err, &connect):
			// Nothing keeps two runs apart then, as nothing did before there was a lock.
			h.sink.Emit(event.Event{Kind: event.Note, Machine: h.name, Text: "the cluster's lock was not to be had: " + err.Error()})
			tell(nil)
			return
		case errors.Is(err, errNoFlock):
			tell(nil)
			return
		}
		if !pause(work, h.again) {
			tell(work.Err())
			return
		}
	}
}

var errNoFlock = errors.New("the server has no flock")

// once holds the lock until work is over, or until the command that keeps it ends.
func (h hold) once(ctx, work context.Context, taken func()) error {
	in, out := io.Pipe()
	defer func() { _ = in.Close() }() // ends the beat, too; a pipe in memory
	go remote.Alive(work, out, h.beat)
	said := &firstLine{taken: taken}
	_, err := h.server.Run(ctx, remote.Cmd{
		Name: "hold the cluster's lock", Script: holdScript,
		Args:  []string{h.who, strconv.Itoa(int(holdPatience.Seconds()))},
		Stdin: in, Stdout: said, Sudo: true, Timeout: holdFor,
	})
	switch {
	case remote.ExitCode(err) == heldCode:
		return &HeldError{Server: h.name, Holder: said.text()}
	case err == nil && said.text() == "absent":
		return errNoFlock
	}
	return err
}

// firstLine keeps the first 200 bytes that the server says and calls taken
// when it says that the lock is held.
type firstLine struct {
	taken func()

	mu   sync.Mutex
	data bytes.Buffer
}

func (f *firstLine) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.data.Write(p[:min(len(p), max(0, 200-f.data.Len()))])
	if strings.HasPrefix(f.data.String(), "held\n") {
		f.taken()
	}
	return len(p), nil
}

// text is what was said, in one line that a terminal may be given.
func (f *firstLine) text() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	line, _, _ := strings.Cut(f.data.String(), "\n")
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, line)
}
