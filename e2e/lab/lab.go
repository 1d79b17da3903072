package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gpuctl/gpuctl/e2e/lab/dockerd"
	"github.com/gpuctl/gpuctl/e2e/lab/machine"
	"github.com/gpuctl/gpuctl/e2e/lab/mirror"
	"github.com/gpuctl/gpuctl/e2e/lab/recipe"
)

// Lab is a lab that is up.
type Lab struct {
	// ID tells labs on one host apart.
	ID string
	// Dir holds the lab's keys, its mirror's files and logs.
	Dir string
	// Engine runs the machines.
	Engine *dockerd.Engine
	// Main is the network that machines are attached to.
	Main machine.Network
	// Mirror is the mirror's address, host:port.
	Mirror string

	options Options
	cache   recipe.Cache
	place   machine.Place
	// overlay is laid over the root of every machine.
	overlay map[string]machine.File
}

// Up brings a lab up or finds the one that is up. What is cached is not built
// again; machines that exist are left as they are.
func Up(ctx context.Context, o Options) (*Lab, error) {
	l, err := open(o)
	if err != nil {
		return nil, err
	}
	unlock, err := l.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := l.up(ctx); err != nil {
		return nil, fmt.Errorf("bringing lab %s up: %w", l.ID, err)
	}
	return l, nil
}

func open(o Options) (*Lab, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	state, err := stateDir()
	if err != nil {
		return nil, err
	}
	cache, err := recipe.Open()
	if err != nil {
		return nil, err
	}
	l := &Lab{ID: o.ID, Dir: filepath.Join(state, "labs", o.ID), options: o, cache: cache}
	if err := os.MkdirAll(l.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("opening lab %s: %w", o.ID, err)
	}
	return l, nil
}

func (l *Lab) up(ctx context.Context) error {
	start := time.Now()
	key, err := ensureKey(l.Key())
	if err != nil {
		return err
	}
	if err := l.step(ctx, "docker engine", l.findEngine); err != nil {
		return err
	}
	var image string
	var contents contents
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		if err = l.step(groupCtx, "network", l.findMain); err != nil {
			return err
		}
		return l.step(groupCtx, "machine image", func(ctx context.Context) error {
			image, err = machine.Image(ctx, l.Engine, l.cache)
			return err
		})
	})
	group.Go(func() (err error) {
		if !dockerd.HasApt() {
			if err := l.step(groupCtx, "what the lab serves, in a container", l.prepareInContainer); err != nil {
				return err
			}
		}
		contents, err = l.build(groupCtx)
		return err
	})
	if err := group.Wait(); err != nil {
		return err
	}
	l.overlay = contents.overlay
	if err := l.step(ctx, "mirror", func(ctx context.Context) error { return l.serve(ctx, contents) }); err != nil {
		return err
	}
	l.place = machine.Place{Engine: l.Engine, Lab: l.ID, Image: image, AuthorizedKey: key, DNS: l.Main.Gateway}
	l.say("lab %s up in %s", l.ID, time.Since(start).Round(10*time.Millisecond))
	return nil
}

func (l *Lab) findEngine(ctx context.Context) (err error) {
	if l.Engine, err = dockerd.Find(ctx, l.EngineDir()); err != nil {
		return err
	}
	if !l.Engine.Fresh {
		return nil
	}
	// An engine starts what ran when the last one was killed: those machines
	// went down without order, long ago, and nobody waits for them.
	old, err := l.Engine.Lines(ctx, "ps", "--all", "--quiet", "--filter", "label="+machine.LabelName)
	if err != nil || len(old) == 0 {
		return err
	}
	_, err = l.Engine.Run(ctx, append([]string{"rm", "--force", "--volumes"}, old...)...)
	return err
}

// Down removes the lab: machines, networks, mirror and keys. The engine and the
// cache stay for the next one.
func (l *Lab) Down(ctx context.Context) error {
	unlock, err := l.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := l.down(ctx); err != nil {
		return fmt.Errorf("taking lab %s down: %w", l.ID, err)
	}
	return nil
}

func (l *Lab) down(ctx context.Context) error {
	machines, err := machine.All(ctx, l.Engine, l.ID)
	if err != nil {
		return err
	}
	var group errgroup.Group
	for _, m := range machines {
		group.Go(func() error { return m.Remove(ctx) })
	}
	errs := []error{group.Wait(), mirror.Stop(l.mirrorDir()), l.removeNetworks(ctx)}
	return errors.Join(append(errs, os.RemoveAll(l.Dir))...)
}

// step runs a step and says how long it took.
func (l *Lab) step(ctx context.Context, name string, do func(context.Context) error) error {
	start := time.Now()
	if err := do(ctx); err != nil {
		return err
	}
	l.say("%8s  %s", time.Since(start).Round(10*time.Millisecond), name)
	return nil
}

func (l *Lab) say(format string, args ...any) {
	fmt.Fprintf(l.options.Out, format+"\n", args...)
}

// Find opens a lab that was brought up before, without building or starting
// anything: enough to look at it, to log in and to take it down.
func Find(ctx context.Context, o Options) (*Lab, error) {
	l, err := open(o)
	if err != nil {
		return nil, err
	}
	if err := l.findEngine(ctx); err != nil {
		return nil, fmt.Errorf("finding lab %s: %w", l.ID, err)
	}
	l.Main.Name = "gpuctl-" + l.ID
	if l.Main.Gateway, err = l.gateway(ctx, l.Main.Name); err != nil {
		return nil, fmt.Errorf("finding lab %s: it is not up: %w", l.ID, err)
	}
	if running, ok := mirror.Find(l.mirrorDir()); ok {
		l.Mirror = running.Address
	}
	return l, nil
}

// EngineDir is where the lab's own Docker engine keeps its files, if there is
// one; all labs of a host share it.
func (l *Lab) EngineDir() string { return filepath.Join(filepath.Dir(filepath.Dir(l.Dir)), "docker") }
