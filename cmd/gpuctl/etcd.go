package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuctl/gpuctl/bootstrap"
	"github.com/gpuctl/gpuctl/bootstrap/k3s"
)

// etcdEngine is what the commands about the control plane ask of package bootstrap.
type etcdEngine interface {
	// Upgrade brings every machine to the file's release of k3s.
	Upgrade(context.Context, bootstrap.UpgradeOptions) (bootstrap.ApplyResult, error)
	// Snapshots lists the snapshots of etcd.
	Snapshots(context.Context) (bootstrap.SnapshotsResult, error)
	// SaveSnapshot takes one.
	SaveSnapshot(ctx context.Context, name string) (bootstrap.SnapshotsResult, error)
	// FetchSnapshot writes one to out.
	FetchSnapshot(ctx context.Context, name string, out io.Writer) error
	// DeleteSnapshot deletes one.
	DeleteSnapshot(ctx context.Context, name string) error
	// RestoreSnapshot brings the cluster back to one.
	RestoreSnapshot(context.Context, bootstrap.RestoreOptions) (bootstrap.ApplyResult, error)
	// RotateCertificates makes the certificates of every machine new.
	RotateCertificates(context.Context, bootstrap.RotateOptions) (bootstrap.ApplyResult, error)
	// RotateTokens makes the cluster's tokens new.
	RotateTokens(context.Context, bootstrap.RotateOptions) (bootstrap.ApplyResult, error)
}

func newEtcd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "etcd",
		Short:   "Save, list, restore and delete snapshots of etcd",
		Example: "  gpuctl etcd snapshot save\n  gpuctl etcd snapshot list",
		Args:    knownCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	snapshot := &cobra.Command{
		Use:   "snapshot",
		Short: "Save, list, restore and delete snapshots of etcd",
		Long: `snapshot keeps the state of the cluster: its objects, not the volumes of pods. k3s
takes one every 12 hours on every server and keeps five. A snapshot opens only
with the server token of its time.`,
		Example: "  gpuctl etcd snapshot save before-the-change --to before.db\n  gpuctl etcd snapshot list\n  gpuctl etcd snapshot restore NAME",
		Args:    knownCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	snapshot.AddCommand(newSnapshotSave(a), newSnapshotList(a), newSnapshotRestore(a), newSnapshotDelete(a))
	cmd.AddCommand(snapshot)
	return cmd
}

func newSnapshotSave(a *app) *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "save [NAME]",
		Short: "Take a snapshot on a server",
		Long: `save takes a snapshot on a server; k3s adds the node and the time to its name. With
--to it is copied to this computer too, in a file of mode 0600: machines that are
rented go, and what is on their disks goes with them.`,
		Example: "  gpuctl etcd snapshot save\n  gpuctl etcd snapshot save before-the-change --to before.db",
		Args:    wants(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := "gpuctl"
			if len(args) > 0 {
				name = args[0]
			}
			if err := k3s.SnapshotName(name); err != nil {
				return &usageError{err}
			}
			return a.withSession(cmd.Context(), need{verb: "etcd snapshot save", record: true, retryFor: briefly},
				func(ctx context.Context, s *session) error {
					result, err := s.engine.SaveSnapshot(ctx, name)
					if err == nil && to != "" && len(result.Snapshots) > 0 {
						err = s.fetch(ctx, result.Snapshots[0].Name, to)
					}
					if len(result.Snapshots) == 0 {
						return err
					}
					return s.finish(result, err, func(w io.Writer) error { return s.snapshotsText(w, result) })
				})
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "also copy it to this `file`, which must not exist")
	return cmd
}

// fetch copies a snapshot to a new file.
func (s *session) fetch(ctx context.Context, name, to string) error {
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return usagef("--to: %w", err)
	}
	err = s.engine.FetchSnapshot(ctx, name, f)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		_ = os.Remove(to) // half a snapshot is none
	}
	return err
}

func newSnapshotList(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the snapshots on the servers",
		Long:    "list asks every server for its snapshots. Servers that do not answer are named, and those of the others are listed.",
		Example: "  gpuctl etcd snapshot list\n  gpuctl etcd snapshot list -o json",
		Args:    wants(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withSession(cmd.Context(), need{verb: "etcd snapshot list", retryFor: briefly}, func(ctx context.Context, s *session) error {
				result, err := s.engine.Snapshots(ctx)
				if err != nil && len(result.Snapshots) == 0 {
					return err
				}
				return s.finish(result, err, func(w io.Writer) error { return s.snapshotsText(w, result) })
			})
		},
	}
}

func (s *session) snapshotsText(out io.Writer, r bootstrap.SnapshotsResult) error {
	w := &writer{w: out}
	if len(r.Snapshots) == 0 {
		w.linef("no snapshots")
	}
	for _, one := range r.Snapshots {
		w.linef("%s  %s  %s  %.1f MiB", one.Name, one.Server, one.Created.UTC().Format(time.DateTime), float64(one.Size)/(1<<20))
	}
	return w.err
}

func newSnapshotDelete(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "delete NAME",
		Short:   "Delete a snapshot",
		Long:    "delete deletes a snapshot from the server that has it, after a question that --yes answers.",
		Example: "  gpuctl etcd snapshot delete NAME --yes",
		Args:    wants(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := k3s.SnapshotName(args[0]); err != nil {
				return &usageError{err}
			}
			return a.withSession(cmd.Context(), need{verb: "etcd snapshot delete", lock: true, record: true, retryFor: briefly},
				func(ctx context.Context, s *session) error {
					plan := bootstrap.PlanResult{Actions: []bootstrap.ActionView{{Title: "delete snapshot " + args[0], Reason: "it was asked for", Consent: "datastore"}}}
					if err := s.confirm()(ctx, plan); err != nil {
						return err
					}
					if err := s.engine.DeleteSnapshot(ctx, args[0]); err != nil {
						return err
					}
					return s.finish(map[string]string{"deleted": args[0]}, nil, func(w io.Writer) error {
						_, err := fmt.Fprintf(w, "deleted %s\n", args[0])
						return err
					})
				})
		},
	}
}

func newSnapshotRestore(a *app) *cobra.Command {
	var gone bool
	cmd := &cobra.Command{
		Use:   "restore NAME",
		Short: "Bring the cluster back to a snapshot",
		Long: `restore stops k3s on all servers, makes one of them what the snapshot says, and has
the others join it anew, one after the other. The data of before are moved aside
on each server, not deleted. Pods run on; the API is away until the end. It works
while the API is dead, also when most of the servers are gone (--gone).

What was changed in the cluster since the snapshot is gone. gpuctl apply
afterwards mends machines that joined since.`,
		Example: "  gpuctl etcd snapshot restore NAME\n  gpuctl etcd snapshot restore NAME --gone --yes && gpuctl apply",
		Args:    wants(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := k3s.SnapshotName(args[0]); err != nil {
				return &usageError{err}
			}
			return a.withSession(cmd.Context(), need{verb: "etcd snapshot restore", lock: true, record: true, retryFor: briefly},
				func(ctx context.Context, s *session) error {
					result, err := s.engine.RestoreSnapshot(ctx, bootstrap.RestoreOptions{Name: args[0], Gone: gone, Confirm: s.confirm()})
					return s.nodesDone(result, result, err)
				})
		},
	}
	cmd.Flags().BoolVar(&gone, "gone", false, "servers that are not reached are gone for good")
	return cmd
}
