package spread

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"sync"

	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/bootstrap/remote"
)

//go:embed lay.sh
var layScript string

// Exit codes of lay.sh by which a machine says that it cannot fetch.
const (
	exitNoCurl     = 41
	exitNotFetched = 42
	exitChecksum   = 44
)

// Spreader knows which machine of a run has what. It is safe for concurrent use.
type Spreader struct {
	dir    string
	secret string

	mu    sync.Mutex
	files map[string]*seeding
	hosts map[string]*listener
	used  map[string]remote.Runner
}

// New makes a spreader with a secret of its own, which is told to secret: it must not stand in any record.
func New(secret func(string)) *Spreader {
	s := &Spreader{dir: Dir, secret: rand.Text(), files: map[string]*seeding{}, hosts: map[string]*listener{}, used: map[string]remote.Runner{}}
	secret(s.secret)
	return s
}

// seeding is the way of one file to its first machine.
type seeding struct {
	done chan struct{}
	// at is the machine that has it; nil when it did not get there.
	at *Machine
}

// Lay brings a file to its place on a machine. Done already, it costs one
// command and no bytes. The error is that of the upload over SSH, the last way.
func (s *Spreader) Lay(ctx context.Context, m Machine, f File, p Place, say plan.Say) error {
	for {
		way, first := s.join(m, f)
		if first {
			err := s.upload(ctx, m, f, p, true, say)
			s.seeded(f, way, m, err)
			return err
		}
		select {
		case <-way.done:
		case <-ctx.Done():
			return fmt.Errorf("sending %s: %w", f.Name, context.Cause(ctx))
		}
		if way.at == nil {
			continue // it did not get there; somebody has to be first
		}
		if way.at.Name != m.Name {
			err := s.fetch(ctx, m, *way.at, f, p, say)
			if err == nil || ctx.Err() != nil {
				return err
			}
			say("%s cannot be fetched from %s (%v); sending it from here", f.Name, way.at.Name, err)
		}
		return s.upload(ctx, m, f, p, way.at.Name == m.Name, say)
	}
}

// join returns a file's way, and whether the machine is the first on it.
func (s *Spreader) join(m Machine, f File) (*seeding, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used[m.Name] = m.On
	if way := s.files[f.SHA256]; way != nil {
		return way, false
	}
	way := &seeding{done: make(chan struct{})}
	s.files[f.SHA256] = way
	return way, true
}

func (s *Spreader) seeded(f File, way *seeding, m Machine, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		way.at = &m
	} else {
		delete(s.files, f.SHA256)
	}
	close(way.done)
}

// upload streams a file over SSH, from where an upload that was cut off ended.
func (s *Spreader) upload(ctx context.Context, m Machine, f File, p Place, keep bool, say plan.Say) error {
	for tries := 1; ; tries++ {
		in := newStream(ctx, f, say)
		err := s.lay(ctx, m, f, p, keep, in, "")
		in.end()
		if in.failed() != nil {
			return fmt.Errorf("reading %s: %w", f.Name, in.failed())
		}
		if remote.ExitCode(err) == exitChecksum && in.from() > 0 && tries == 1 {
			continue // what an earlier run left was another file's
		}
		if err != nil {
			return fmt.Errorf("sending %s: %w", f.Name, err)
		}
		return nil
	}
}

// fetch lets a machine take a file from another.
func (s *Spreader) fetch(ctx context.Context, m, from Machine, f File, p Place, say plan.Say) error {
	if !Private(from.Address) || !Private(m.Address) {
		return errors.New("they share no private network")
	}
	base, err := s.serve(ctx, from)
	if err != nil {
		return err
	}
	say("fetching %s from %s", f.Name, from.Name)
	return s.lay(ctx, m, f, p, false, nil, base+"/"+f.SHA256)
}

func (s *Spreader) lay(ctx context.Context, m Machine, f File, p Place, keep bool, in *stream, url string) error {
	mode, kept := p.Mode, ""
	switch {
	case p.Unpack:
		mode = "unpack"
	case mode == "":
		mode = "0644"
	}
	if keep {
		kept = "keep"
	}
	c := remote.Cmd{
		Name: "lay " + f.Name, Script: layScript, Sudo: true, Timeout: layLimit(f.Size),
		Args:    []string{f.SHA256, p.Path, mode, url, kept, s.dir},
		Secrets: []string{s.secret},
	}
	if url != "" {
		c.Env = map[string]string{"GPUCTL_AUTHORIZATION": "Bearer " + s.secret}
	}
	if in != nil {
		c.Stdin, c.Stdout = in, in
	}
	_, err := m.On.Run(ctx, c)
	return err
}
