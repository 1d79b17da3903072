package main

import (
	"context"
	"io"

	"github.com/gpuctl/gpuctl/bootstrap"
)

// fakeEtcd are the answers of a fakeEngine to commands about the control plane.
type fakeEtcd struct {
	upgrade func(context.Context, bootstrap.UpgradeOptions) (bootstrap.ApplyResult, error)
	listed  func(context.Context) (bootstrap.SnapshotsResult, error)
	saved   func(context.Context, string) (bootstrap.SnapshotsResult, error)
	fetched func(context.Context, string, io.Writer) error
	deleted func(context.Context, string) error
	restore func(context.Context, bootstrap.RestoreOptions) (bootstrap.ApplyResult, error)
	certs   func(context.Context, bootstrap.RotateOptions) (bootstrap.ApplyResult, error)
	tokens  func(context.Context, bootstrap.RotateOptions) (bootstrap.ApplyResult, error)
}

func (f *fakeEngine) Upgrade(ctx context.Context, o bootstrap.UpgradeOptions) (bootstrap.ApplyResult, error) {
	if f.upgrade == nil {
		return bootstrap.ApplyResult{}, f.unexpected("Upgrade")
	}
	return f.upgrade(ctx, o)
}

func (f *fakeEngine) Snapshots(ctx context.Context) (bootstrap.SnapshotsResult, error) {
	if f.listed == nil {
		return bootstrap.SnapshotsResult{}, f.unexpected("Snapshots")
	}
	return f.listed(ctx)
}

func (f *fakeEngine) SaveSnapshot(ctx context.Context, name string) (bootstrap.SnapshotsResult, error) {
	if f.saved == nil {
		return bootstrap.SnapshotsResult{}, f.unexpected("SaveSnapshot")
	}
	return f.saved(ctx, name)
}

func (f *fakeEngine) FetchSnapshot(ctx context.Context, name string, out io.Writer) error {
	if f.fetched == nil {
		return f.unexpected("FetchSnapshot")
	}
	return f.fetched(ctx, name, out)
}

func (f *fakeEngine) DeleteSnapshot(ctx context.Context, name string) error {
	if f.deleted == nil {
		return f.unexpected("DeleteSnapshot")
	}
	return f.deleted(ctx, name)
}

func (f *fakeEngine) RestoreSnapshot(ctx context.Context, o bootstrap.RestoreOptions) (bootstrap.ApplyResult, error) {
	if f.restore == nil {
		return bootstrap.ApplyResult{}, f.unexpected("RestoreSnapshot")
	}
	return f.restore(ctx, o)
}

func (f *fakeEngine) RotateCertificates(ctx context.Context, o bootstrap.RotateOptions) (bootstrap.ApplyResult, error) {
	if f.certs == nil {
		return bootstrap.ApplyResult{}, f.unexpected("RotateCertificates")
	}
	return f.certs(ctx, o)
}

func (f *fakeEngine) RotateTokens(ctx context.Context, o bootstrap.RotateOptions) (bootstrap.ApplyResult, error) {
	if f.tokens == nil {
		return bootstrap.ApplyResult{}, f.unexpected("RotateTokens")
	}
	return f.tokens(ctx, o)
}
