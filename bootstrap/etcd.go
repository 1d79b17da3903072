package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/k3s"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/internal/inventory"
)

// SnapshotsResult are the snapshots of etcd on the servers.
type SnapshotsResult struct {
	Cluster   string         `json:"cluster"`
	Snapshots []k3s.Snapshot `json:"snapshots"`
}

// errSQLite says that there is no etcd to take a snapshot of.
var errSQLite = errors.New("the datastore is sqlite, which has no snapshots: kubernetes.datastore: etcd moves it to etcd, one way")

// withEtcd refuses where there is no etcd of gpuctl's.
func (w wanted) withEtcd() error {
	switch {
	case w.existing() != nil:
		return errors.New("the servers of an existing cluster are not gpuctl's")
	case w.config.Spec.Kubernetes.Datastore == k3s.SQLite:
		return errSQLite
	}
	return nil
}

// Snapshots lists the snapshots that the servers have. Servers that do not
// answer are in the error; the result has those of the others.
func (e *Engine) Snapshots(ctx context.Context) (SnapshotsResult, error) {
	r := SnapshotsResult{Cluster: e.settings.Inventory.Cluster, Snapshots: []k3s.Snapshot{}}
	if err := e.want.withEtcd(); err != nil {
		return r, err
	}
	var errs []error
	for _, m := range e.want.serverList() {
		all, err := k3s.ListSnapshots(ctx, e.fleet.on(m.Name), m.DataDir, m.Name)
		if err != nil {
			errs = append(errs, named(m.Name, err))
			continue
		}
		r.Snapshots = append(r.Snapshots, all...)
	}
	return r, errors.Join(errs...)
}

// SaveSnapshot takes a snapshot on a server, any that does it.
func (e *Engine) SaveSnapshot(ctx context.Context, name string) (SnapshotsResult, error) {
	r := SnapshotsResult{Cluster: e.settings.Inventory.Cluster, Snapshots: []k3s.Snapshot{}}
	if err := e.want.withEtcd(); err != nil {
		return r, err
	}
	var errs []error
	for _, m := range e.api.order() {
		on := e.fleet.on(m.Name)
		saved, err := k3s.SaveSnapshot(ctx, on, m.DataDir, name)
		if err != nil {
			errs = append(errs, named(m.Name, err))
			continue
		}
		all, err := k3s.ListSnapshots(ctx, on, m.DataDir, m.Name)
		if err != nil {
			return r, named(m.Name, err)
		}
		for _, one := range all {
			if one.Name == saved {
				r.Snapshots = append(r.Snapshots, one)
				return r, nil
			}
		}
		return r, fmt.Errorf("%s: snapshot %s is not in k3s's list", m.Name, saved)
	}
	return r, errors.Join(errs...)
}

// find returns a snapshot by its name.
func (e *Engine) find(ctx context.Context, name string) (k3s.Snapshot, error) {
	all, err := e.Snapshots(ctx)
	for _, s := range all.Snapshots {
		if s.Name == name {
			return s, nil
		}
	}
	if err != nil {
		return k3s.Snapshot{}, err
	}
	return k3s.Snapshot{}, fmt.Errorf("%s: %w", name, k3s.ErrNoSnapshot)
}

// FetchSnapshot writes a snapshot to out. It opens only with the server token of its time.
func (e *Engine) FetchSnapshot(ctx context.Context, name string, out io.Writer) error {
	s, err := e.find(ctx, name)
	if err != nil {
		return err
	}
	return k3s.FetchSnapshot(ctx, e.fleet.on(s.Server), s, out)
}

// DeleteSnapshot deletes a snapshot from the server that has it. The error is
// k3s.ErrNoSnapshot where none has.
func (e *Engine) DeleteSnapshot(ctx context.Context, name string) error {
	s, err := e.find(ctx, name)
	if err != nil {
		return err
	}
	return k3s.DeleteSnapshot(ctx, e.fleet.on(s.Server), e.fleet.on(s.Server).machine.DataDir, name)
}

// RestoreOptions name the snapshot to which a cluster goes back.
type RestoreOptions struct {
	// Name is that of the snapshot; it lies on a server.
	Name string
	// Gone says that servers which are not reached are gone for good.
	Gone bool
	// Confirm as in ApplyOptions.
	Confirm func(context.Context, PlanResult) error
}

// RestoreSnapshot brings the cluster's state back to a snapshot: k3s stops on
// all servers, one is reset to the snapshot, the others join it anew. It works
// while the API is dead. Machines that joined after the snapshot are mended by
// Apply.
func (e *Engine) RestoreSnapshot(ctx context.Context, o RestoreOptions) (ApplyResult, error) {
	if err := e.want.withEtcd(); err != nil {
		return ApplyResult{}, err
	}
	if err := k3s.SnapshotName(o.Name); err != nil {
		return ApplyResult{}, err
	}
	s, err := e.observe(ctx)
	if err != nil {
		return ApplyResult{}, err
	}
	at, file, err := e.locate(ctx, s, o.Name)
	if err != nil {
		return ApplyResult{}, err
	}
	actions, err := e.want.restoreActions(at, file, s, e.doer(), o.Gone)
	if err != nil {
		return ApplyResult{}, err
	}
	if o.Gone {
		s.unreached = nil
	}
	return e.onNodes(ctx, s, book{actions: actions, out: map[string]bool{}}, o.Confirm, nil, nil)
}

// locate finds the server that has the file of a snapshot, without asking k3s.
func (e *Engine) locate(ctx context.Context, s sight, name string) (inventory.Machine, string, error) {
	for _, m := range e.want.inTurn(s) {
		if _, seen := s.facts[m.Name]; !seen {
			continue
		}
		file := (k3s.Want{DataDir: m.DataDir}).Data() + "/server/db/snapshots/" + name
		_, err := e.fleet.on(m.Name).Run(ctx, remote.Cmd{Name: "look for a snapshot", Script: "[ -f \"$1\" ] || exit 44\n", Args: []string{file}, Sudo: true, Timeout: 20 * time.Second})
		switch {
		case err == nil:
			return m, file, nil
		case remote.ExitCode(err) != 44:
			return m, "", named(m.Name, err)
		}
	}
	return inventory.Machine{}, "", fmt.Errorf("%s: %w on the servers that are reached", name, k3s.ErrNoSnapshot)
}

// restoreActions plans the way back to a snapshot on one server. It is pure.
func (w wanted) restoreActions(at inventory.Machine, file string, s sight, do doer, gone bool) ([]plan.Action, error) {
	net := w.network(s)
	var actions []plan.Action
	var stops []string
	for _, m := range w.inTurn(s) {
		if _, seen := s.facts[m.Name]; !seen {
			if gone {
				continue
			}
			return nil, &StaysError{Node: m.Name, Err: s.unreached[m.Name],
				Reason: "its etcd would go on with the state of before; reach it, or say --gone if it is gone for good"}
		}
		a := plan.Action{
			ID: m.Name + "/k3s-stop", Machine: m.Name, Title: "stop k3s", Reason: "etcd goes back to a snapshot", Timeout: 3 * time.Minute,
			Changes: []string{"the API is away until the end; pods run on"}, Consent: plan.ConsentDatastore,
			Apply: func(ctx context.Context, _ plan.Say) error { return k3s.Stop(ctx, do.on(m.Name), "k3s") },
		}
		actions, stops = append(actions, a), append(stops, a.ID)
	}
	first := w.k3s(at, s, net)
	first.ServerURL, first.Datastore = "", k3s.Etcd
	restore := plan.Action{
		ID: at.Name + "/etcd-restore", Machine: at.Name, Title: "restore the snapshot", Reason: "it was asked for", Needs: stops, Timeout: 13 * time.Minute,
		Changes: []string{file + " takes the place of etcd's data, which are moved to db/etcd-old-<time>", "what was changed in the cluster since is gone"},
		Consent: plan.ConsentDatastore,
		Apply: func(ctx context.Context, say plan.Say) error {
			return k3s.Restore(ctx, first, k3s.Access{On: do.on(at.Name)}, file, say)
		},
	}
	return append(append(actions, restore), w.rejoins(at, restore.ID, s, net, do)...), nil
}

// rejoins makes the other servers members again, one after the other.
func (w wanted) rejoins(at inventory.Machine, after string, s sight, net Network, do doer) []plan.Action {
	var actions []plan.Action
	for _, m := range w.inTurn(s) {
		if _, seen := s.facts[m.Name]; !seen || m.Name == at.Name {
			continue
		}
		want := w.k3s(m, s, net)
		want.ServerURL = serverURL(net.Addresses[at.Name].Reach)
		a := plan.Action{
			ID: m.Name + "/etcd-rejoin", Machine: m.Name, Title: "join the restored cluster", Reason: "its etcd has the state of before", Timeout: 13 * time.Minute,
			Needs: []string{after}, Changes: []string{"its data of etcd are moved to db/etcd-old-<time>", "it joins " + at.Name + " as a new member"}, Consent: plan.ConsentDatastore,
			Apply: func(ctx context.Context, say plan.Say) error {
				join := func(ctx context.Context) (k3s.Credentials, error) {
					return k3s.ReadCredentials(ctx, do.on(at.Name), at.DataDir)
				}
				return k3s.Rejoin(ctx, want, k3s.Access{On: do.on(m.Name), Join: join}, say)
			},
		}
		actions, after = append(actions, a), a.ID
	}
	return actions
}
