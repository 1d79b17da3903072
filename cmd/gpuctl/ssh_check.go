package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/bootstrap/sshconn"
	"github.com/gpuctl/gpuctl/internal/config"
	"github.com/gpuctl/gpuctl/internal/inventory"
	"github.com/gpuctl/gpuctl/internal/state"
)

func newSSHCheck(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "check NAME|[user@]host[:port]...",
		Short: "Say what was tried to reach a machine, and what each try got",
		Long: `check connects to machines the way gpuctl does and says, step by step, what ssh_config
came to, which jump hosts and keys were tried and what each got, which host key
answered, how one becomes root and how the Kubernetes API is reached.

A NAME is a machine of gpuctl.yaml; anything else is a machine that needs no file.
Nothing is changed on the machines. Exit code 4: one of them is of no use.`,
		Example: "  gpuctl ssh check gpu-1\n  gpuctl ssh check ubuntu@203.0.113.10 -o json",
		Args:    wants(cobra.MinimumNArgs(1)),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.runSSHCheck(cmd.Context(), args) },
	}
}

func (a *app) runSSHCheck(ctx context.Context, args []string) error {
	s, err := a.looseSession(ctx)
	if err != nil {
		return err
	}
	machines, err := s.machinesNamed(args)
	if err != nil {
		return err
	}
	dialer := sshconn.NewDialer(s.checkOptions())
	views := make([]sshView, len(machines))
	var errs []error
	var mu sync.Mutex
	var group errgroup.Group
	for i, m := range machines {
		group.Go(func() error {
			c := dialer.Check(ctx, targetOf(m))
			mu.Lock()
			defer mu.Unlock()
			views[i] = viewOf(m, c)
			if c.Err != nil {
				errs = append(errs, c.Err)
			}
			return nil
		})
	}
	_ = group.Wait() // every failure stands in errs
	err = dialer.Close()
	if ctx.Err() != nil {
		return errors.Join(context.Cause(ctx), err)
	}
	if len(errs) > 0 {
		err = errors.Join(err, &uselessError{failed: len(errs), of: len(machines), errs: errs})
	}
	return errors.Join(err, s.show(sshViews{views}, func(w io.Writer) error { return sshText(w, views) }))
}

// looseSession is a session with the file where there is one; without, the
// settings are the defaults and nothing is kept.
func (a *app) looseSession(ctx context.Context) (*session, error) {
	s := &session{app: a}
	_, err := config.Load(a.flags.file)
	if errors.Is(err, fs.ErrNotExist) && a.flags.file == "gpuctl.yaml" {
		return s, nil
	}
	if err := s.load(ctx); err != nil {
		return nil, err
	}
	s.state, err = state.Open(s.config.Metadata.Name)
	return s, err
}

// checkOptions try once: a check says what is, not what may come.
func (s *session) checkOptions() sshconn.Options {
	var redactor state.Redactor
	ask := s.asker(redactor.Add)
	o := sshconn.Options{
		Strict:       s.config.Spec.SSH.HostKeys == "strict",
		SudoPassword: ask.sudoPassword, Passphrase: ask.passphrase, Logger: slog.New(slog.DiscardHandler),
		SecretEnv: s.config.SecretEnv(),
	}
	if s.state.Path() != "" {
		o.KnownHosts = s.state.KnownHosts()
	}
	return o
}

// machinesNamed finds machines of the file by name; other words are machines themselves.
func (s *session) machinesNamed(args []string) ([]inventory.Machine, error) {
	var out []inventory.Machine
	ssh := s.config.Spec.SSH
	for _, arg := range args {
		if m, ok := s.inventory.Find(arg); ok {
			out = append(out, m)
			continue
		}
		t, err := config.ParseTarget(arg)
		if err != nil {
			return nil, usagef("%q is no machine of %s and no address: %w", arg, s.flags.file, err)
		}
		m := inventory.Machine{Name: arg, Host: t.Host, Port: t.Port, User: t.User, IdentityFile: ssh.IdentityFile, Jump: ssh.Jump}
		if m.User == "" {
			m.User = ssh.User
		}
		if m.Port == 0 {
			m.Port = ssh.Port
		}
		out = append(out, m)
	}
	return out, nil
}

// uselessError says how many machines failed; why stands in the result.
type uselessError struct {
	failed, of int
	errs       []error
}

func (e *uselessError) Error() string {
	return fmt.Sprintf("%d of %s cannot be used", e.failed, plural(e.of, "machine"))
}

func (e *uselessError) Unwrap() []error { return e.errs }

// attemptView is one thing that was tried.
type attemptView struct {
	What   string `json:"what"`
	Answer string `json:"answer"`
}

func attemptViews(trace []remote.Attempt) []attemptView {
	out := []attemptView{}
	for _, t := range trace {
		out = append(out, attemptView{t.What, t.Answer})
	}
	return out
}
