package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/internal/config"
	"github.com/gpuctl/gpuctl/internal/event"
	"github.com/gpuctl/gpuctl/internal/inventory"
	"github.com/gpuctl/gpuctl/internal/state"
	"github.com/gpuctl/gpuctl/internal/ui"
	"github.com/gpuctl/gpuctl/provision"
)

// session is one command's work on one cluster.
type session struct {
	*app
	config    config.Config
	inventory inventory.Inventory
	state     state.Dir
	engine    Engine
	progress  printer
	// sink takes events of what the engine does not do itself.
	sink event.Sink
	// record is nil for commands that only ask.
	record *state.Run
}

// need says what a command's session holds.
type need struct {
	// verb names the run: "apply".
	verb string
	// lock: one such run at a time.
	lock bool
	// record: keep events, report and debug log.
	record bool
	// retryFor is how long a machine that does not answer, as one that boots, is tried again.
	retryFor time.Duration
	// edit changes the file, under the lock and before the machines are taken from it; may be nil.
	edit func(*session) error
	// then is a second run under the same lock, with file and machines read again, after
	// a first that went well; no function to run means none. It may be nil.
	then func() (need, func(context.Context, *session) error)
}

// withSession opens what the command needs, runs it and closes everything.
func (a *app) withSession(ctx context.Context, n need, do func(context.Context, *session) error) (err error) {
	if a.flags.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, a.flags.timeout, fmt.Errorf("the limit --timeout %s passed", a.flags.timeout))
		defer cancel()
	}
	s := &session{app: a}
	if err := s.load(ctx); err != nil {
		return err
	}
	if s.state, err = state.Open(s.config.Metadata.Name); err != nil {
		return err
	}
	if n.lock {
		lock, err := s.state.Lock("gpuctl " + n.verb)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, lock.Unlock()) }()
	}
	if n.edit != nil {
		if err := n.edit(s); err != nil {
			return err
		}
		if err := s.load(ctx); err != nil {
			return err
		}
	}
	if err := s.run(ctx, n, do); err != nil || n.then == nil {
		return err
	}
	next, do := n.then()
	if do == nil {
		return nil
	}
	if err := s.load(ctx); err != nil {
		return err
	}
	return s.run(ctx, next, do)
}

// run makes the record, the printer and the engine around do.
func (s *session) run(ctx context.Context, n need, do func(context.Context, *session) error) (err error) {
	var redactor state.Redactor
	if n.record {
		if err := s.sayInventory(); err != nil {
			return err
		}
	}
	s.progress = s.printer()
	defer s.progress.Close()
	sinks, debug := []event.Sink{s.progress}, io.Discard
	if n.record {
		if s.record, err = s.state.NewRun(time.Now(), &redactor); err != nil {
			return err
		}
		s.record.Emit(event.Event{Time: time.Now(), Kind: event.RunStarted, Text: n.verb})
		defer func() { err = errors.Join(err, s.endRecord(ctx, err)) }()
		sinks, debug = append(sinks, s.record), s.record.Debug()
	}
	s.sink = stamped(event.Tee(sinks...))
	offline, err := s.openBundle(n)
	if err != nil {
		return err
	}
	if offline != nil {
		defer offline.Close()
	}
	s.engine, err = s.newEngine(engineDeps{
		Bundle: offline,
		Config: s.config, Inventory: s.inventory, Nodes: s.flags.nodes, Force: s.flags.force, State: s.state,
		Sink:   s.sink,
		Log:    slog.New(slog.NewTextHandler(debug, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Secret: redactor.Add, RetryFor: n.retryFor, Ask: s.asker(redactor.Add),
	})
	if err != nil {
		return err
	}
	err = do(ctx, s)
	return errors.Join(err, s.engine.Close())
}

// endRecord keeps how the run ended.
func (s *session) endRecord(ctx context.Context, err error) error {
	if err != nil {
		err = explainEnd(ctx, err)
	}
	e := event.Event{Time: time.Now(), Kind: event.RunFinished, Text: fmt.Sprintf("exit code %d", exitCode(err))}
	if err != nil {
		e.Error = err.Error()
	}
	s.record.Emit(e)
	return s.record.Close()
}

// stamped gives events the time at which they come by.
func stamped(sink event.Sink) event.Sink {
	return event.SinkFunc(func(e event.Event) {
		if e.Time.IsZero() {
			e.Time = time.Now()
		}
		sink.Emit(e)
	})
}

// load reads the file and finds the machines.
func (s *session) load(ctx context.Context) error {
	var err error
	if s.config, err = config.Load(s.flags.file); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return usagef("there is no %s here; gpuctl bootstrap user@host writes one, -f names another", s.flags.file)
		}
		return err
	}
	if from := s.config.Spec.MachinesFrom; from != nil && from.Terraform != nil {
		if err := s.provisioned(ctx, terraformOf(*from.Terraform)); err != nil {
			return err
		}
	}
	s.inventory = s.config.Inventory()
	return s.checkNodes()
}

// provisioned takes the machines from a source and says which it left out.
func (s *session) provisioned(ctx context.Context, source provision.Source) error {
	found, err := source.Find(ctx)
	if err != nil {
		return err
	}
	for _, skipped := range found.Skipped {
		if _, err := fmt.Fprintf(s.err, "%s is left out: %s\n", skipped.Name, skipped.Reason); err != nil {
			return err
		}
	}
	s.config, err = s.config.WithMachines(found.Machines)
	return err
}

func (s *session) checkNodes() error {
	if s.config.Spec.Kubernetes.Existing != nil && len(s.inventory.Machines) == 0 {
		return nil // the cluster knows its nodes, and is asked later
	}
	for _, n := range s.flags.nodes {
		if _, ok := s.inventory.Find(n); !ok {
			var names []string
			for _, m := range s.inventory.Machines {
				names = append(names, m.Name)
			}
			return usagef("--nodes: there is no machine %q; there are %s", n, strings.Join(names, ", "))
		}
	}
	return nil
}

// printer is a sink that must be closed before anything else is printed. Close may come twice.
type printer interface {
	event.Sink
	Close()
}

func (s *session) printer() printer {
	var names []string
	for _, m := range s.inventory.Machines {
		names = append(names, m.Name)
	}
	style := s.style(s.terminal.err)
	if s.terminal.err {
		return ui.NewLive(s.err, style, names, s.flags.verbose, s.size)
	}
	return ui.NewPlain(s.err, style, names, s.flags.verbose)
}
