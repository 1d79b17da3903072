package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/gpuctl/gpuctl/bootstrap"
	"github.com/gpuctl/gpuctl/internal/config"
)

func newUpgrade(a *app) *cobra.Command {
	u := upgrading{}
	cmd := &cobra.Command{
		Use:   "upgrade",
		Short: "Bring k3s to another release, one minor version at a time",
		Long: `upgrade brings every machine to the release of gpuctl.yaml, or of its set; --to
writes another release into the file first. A snapshot of etcd is taken, then
servers change one after the other, then agents: each is drained, changed, seen
Ready at the new release, its GPUs proven, and opened again. What fails stops
all that comes after it; the same command goes on from there.

A minor version left out, a release older than the installed one, an agent that
the new servers would not serve, a step of etcd left out and a server that is
away already are refused before anything changes. apply never changes the
release of a machine that has one.

Exit code 3: it is not safe, and nothing was changed.`,
		Example: `  gpuctl upgrade --to v1.36.3+k3s1
  gpuctl upgrade --max-unavailable 3 --yes
  gpuctl upgrade --no-drain`,
		Args: wants(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if u.unavailable < 1 {
				return usagef("--max-unavailable %d: at least one node has to change", u.unavailable)
			}
			if len(a.flags.nodes) > 0 {
				return usagef("upgrade changes all machines, in an order that keeps them compatible; --nodes has no place here")
			}
			return a.withSession(cmd.Context(), need{verb: "upgrade", lock: true, record: true, retryFor: patience, edit: u.edit}, u.run)
		},
	}
	f := cmd.Flags()
	f.StringVar(&u.to, "to", "", "the `release`, such as v1.36.3+k3s1; it is written into gpuctl.yaml")
	f.IntVar(&u.unavailable, "max-unavailable", 1, "how many agents may change at once; servers always change one at a time")
	f.BoolVar(&u.noDrain, "no-drain", false, "leave pods on the nodes: they run on while k3s restarts")
	u.o.addFlags(cmd)
	addForce(cmd, a)
	return cmd
}

// upgrading is one run of upgrade.
type upgrading struct {
	to          string
	unavailable int
	noDrain     bool
	o           applyOptions
	// old is the file as it was; nil where it was not changed.
	old []byte
}

// edit writes the release into the file.
func (u *upgrading) edit(s *session) error {
	if s.config.Spec.Kubernetes.Existing != nil {
		return usagef("the servers of an existing cluster are not gpuctl's to upgrade")
	}
	if u.to == "" {
		return nil
	}
	changed, err := config.Rewrite(s.flags.file, func(data []byte) ([]byte, error) {
		u.old = data
		return config.SetVersion(data, s.flags.file, u.to)
	})
	if !changed {
		u.old = nil
	}
	if err != nil {
		return &usageError{err}
	}
	return nil
}

func (u *upgrading) run(ctx context.Context, s *session) error {
	result, err := s.engine.Upgrade(ctx, bootstrap.UpgradeOptions{MaxUnavailable: u.unavailable, NoDrain: u.noDrain,
		ApplyOptions: bootstrap.ApplyOptions{Confirm: s.confirm(), SkipSmoke: u.o.skipSmoke, NoPairs: u.o.noPairs}})
	if err != nil && len(result.Outcomes) == 0 && u.old != nil {
		// Nothing has changed but the file, and that was for nothing.
		_, back := config.Rewrite(s.flags.file, func([]byte) ([]byte, error) { return u.old, nil })
		err = errors.Join(err, back)
	}
	if err != nil && result.Cluster == "" {
		return err
	}
	return s.finish(result, err, func(w io.Writer) error { return s.applyText(w, result, err) })
}
