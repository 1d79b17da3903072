package main

import (
	"context"

	"github.com/gpuctl/gpuctl/bootstrap"
)

// fakeNodes are the answers of a fakeEngine to node commands.
type fakeNodes struct {
	list    func(context.Context) (bootstrap.NodeListResult, error)
	cordon  func(context.Context, []string, bool) (bootstrap.ApplyResult, error)
	drain   func(context.Context, bootstrap.DrainOptions) (bootstrap.ApplyResult, error)
	remove  func(context.Context, bootstrap.RemoveOptions) (bootstrap.RemoveResult, error)
	reap    func(context.Context, bootstrap.ReapOptions) (bootstrap.RemoveResult, error)
	replace func(context.Context, bootstrap.ReplaceOptions) (bootstrap.ApplyResult, error)
	reach   func(context.Context, string) error
}

func (f *fakeEngine) ListNodes(ctx context.Context) (bootstrap.NodeListResult, error) {
	if f.list == nil {
		return bootstrap.NodeListResult{}, f.unexpected("ListNodes")
	}
	return f.list(ctx)
}

func (f *fakeEngine) CordonNodes(ctx context.Context, names []string, on bool) (bootstrap.ApplyResult, error) {
	if f.cordon == nil {
		return bootstrap.ApplyResult{}, f.unexpected("CordonNodes")
	}
	return f.cordon(ctx, names, on)
}

func (f *fakeEngine) DrainNodes(ctx context.Context, o bootstrap.DrainOptions) (bootstrap.ApplyResult, error) {
	if f.drain == nil {
		return bootstrap.ApplyResult{}, f.unexpected("DrainNodes")
	}
	return f.drain(ctx, o)
}

func (f *fakeEngine) RemoveNodes(ctx context.Context, o bootstrap.RemoveOptions) (bootstrap.RemoveResult, error) {
	if f.remove == nil {
		return bootstrap.RemoveResult{}, f.unexpected("RemoveNodes")
	}
	return f.remove(ctx, o)
}

func (f *fakeEngine) ReapNodes(ctx context.Context, o bootstrap.ReapOptions) (bootstrap.RemoveResult, error) {
	if f.reap == nil {
		return bootstrap.RemoveResult{}, f.unexpected("ReapNodes")
	}
	return f.reap(ctx, o)
}

func (f *fakeEngine) ReplaceNode(ctx context.Context, o bootstrap.ReplaceOptions) (bootstrap.ApplyResult, error) {
	if f.replace == nil {
		return bootstrap.ApplyResult{}, f.unexpected("ReplaceNode")
	}
	return f.replace(ctx, o)
}

func (f *fakeEngine) Reach(ctx context.Context, machine string) error {
	if f.reach == nil {
		return f.unexpected("Reach")
	}
	return f.reach(ctx, machine)
}
