package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuctl/gpuctl/bootstrap"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/bootstrap/sshconn"
	"github.com/gpuctl/gpuctl/internal/config"
	"github.com/gpuctl/gpuctl/internal/inventory"
)

// nodeReplaceOptions are the flags of node replace.
type nodeReplaceOptions struct {
	applyOptions
	host      string
	acceptKey bool
}

func newNodeReplace(a *app) *cobra.Command {
	var o nodeReplaceOptions
	cmd := &cobra.Command{
		Use:   "replace NAME",
		Short: "Bring a rebuilt or moved machine back under its name",
		Long: `replace is for a machine that came back with another host key or at another
address. It shows the old and the new key and asks, forgets the old key of this
machine alone, deletes the old node with the password of its machine, joins the
machine again and proves its GPUs.

--yes does not agree to a new host key: that takes --accept-new-host-key. A machine
whose node is Ready and alive is not replaced.`,
		Example: `  gpuctl node replace gpu-3
  gpuctl node replace gpu-3 --host ubuntu@203.0.113.40
  gpuctl node replace gpu-3 --accept-new-host-key --yes`,
		Args: wants(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			names, err := a.nodeNames(args)
			if err != nil {
				return err
			}
			r := replacement{name: names[0], o: o}
			return a.withSession(cmd.Context(), need{verb: "node replace", lock: true, record: true, retryFor: patience, edit: r.move}, r.run)
		},
	}
	cmd.Flags().StringVar(&o.host, "host", "", "the machine's new address, `[user@]host[:port]`; what it does not say stays")
	cmd.Flags().BoolVar(&o.acceptKey, "accept-new-host-key", false, "agree to the host key that the machine shows now")
	o.addFlags(cmd)
	addBundle(cmd, a)
	return cmd
}

// replacement is one machine on its way back.
type replacement struct {
	name string
	o    nodeReplaceOptions
	// old is the file as it was; nil where it was not changed.
	old []byte
}

// move writes the new address into the file and keeps the run to the machine.
func (r *replacement) move(s *session) error {
	m, ok := s.inventory.Find(r.name)
	switch {
	case !ok:
		return usagef("there is no machine %q in %s; gpuctl node add adds one", r.name, s.flags.file)
	case m.Role == inventory.Server && len(s.inventory.Servers()) == 1:
		return usagef("%s is the only server; it cannot be replaced", r.name)
	}
	s.flags.nodes = []string{r.name}
	if r.o.host == "" {
		return nil
	}
	target, err := config.ParseTarget(r.o.host)
	if err != nil {
		return usagef("--host: %w", err)
	}
	changed, err := config.Rewrite(s.flags.file, func(data []byte) ([]byte, error) {
		r.old = data
		return config.SetAddress(data, s.flags.file, r.name, target)
	})
	if !changed {
		r.old = nil
	}
	if errors.Is(err, config.ErrMachinesElsewhere) {
		return usagef("--host: %w", err)
	}
	return err
}

func (r *replacement) run(ctx context.Context, s *session) error {
	if err := r.meet(ctx, s); err != nil {
		if r.old == nil {
			return err
		}
		// Nothing has changed but the file, and that was for nothing.
		_, back := config.Rewrite(s.flags.file, func([]byte) ([]byte, error) { return r.old, nil })
		return errors.Join(err, back)
	}
	result, err := s.engine.ReplaceNode(ctx, bootstrap.ReplaceOptions{Node: r.name,
		ApplyOptions: bootstrap.ApplyOptions{Confirm: s.confirm(), SkipSmoke: r.o.skipSmoke}})
	if err != nil && len(result.Machines) == 0 {
		return err
	}
	return s.finish(result, err, func(w io.Writer) error { return s.applyText(w, result, err) })
}

// meet connects to the machine. A changed key of this very machine is pinned
// after a person, or the flag, has agreed to it; that of a jump host never.
func (r *replacement) meet(ctx context.Context, s *session) error {
	err := s.engine.Reach(ctx, r.name)
	var connect *remote.ConnectError
	var changed *sshconn.KeyChangedError
	if !errors.As(err, &connect) || connect.Kind != remote.HostKey || !errors.As(connect, &changed) {
		return err
	}
	if err := s.trustKey(ctx, r.name, changed, r.o.acceptKey); err != nil {
		return err
	}
	if err := sshconn.ReplaceKey(s.state.KnownHosts(), changed); err != nil {
		return err
	}
	return s.engine.Reach(ctx, r.name)
}

// trustKey shows both keys and asks.
func (s *session) trustKey(ctx context.Context, machine string, k *sshconn.KeyChangedError, agreedTo bool) error {
	s.progress.Close() // the live view goes before a question comes
	if _, err := fmt.Fprintf(s.err, "The host key of %s (%s) has changed.\n  known: %s\n  now:   %s\n", machine, k.Name, strings.Join(k.Known, "\n         "), k.Offered); err != nil {
		return err
	}
	if agreedTo {
		return nil
	}
	if !s.terminal.in {
		return fmt.Errorf("a new host key of %s: compare it with what the provider shows and agree with --accept-new-host-key: %w: %w", machine, plan.ErrConsent, k)
	}
	if _, err := fmt.Fprint(s.err, "If the machine was not rebuilt, someone else may answer in its place.\nForget the old key and trust the new one? [y/N] "); err != nil {
		return err
	}
	answer, err := readLine(ctx, bufio.NewReader(s.in))
	if err != nil {
		return err
	}
	if !agreed(answer) {
		return fmt.Errorf("you did not trust the new host key of %s: %w", machine, plan.ErrConsent)
	}
	return nil
}
