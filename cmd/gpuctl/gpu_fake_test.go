package main

import (
	"context"

	"github.com/gpuctl/gpuctl/bootstrap"
)

func (f *fakeEngine) GPUs(ctx context.Context) (bootstrap.GPUsResult, error) {
	if f.gpus == nil {
		return bootstrap.GPUsResult{}, f.unexpected("GPUs")
	}
	return f.gpus(ctx)
}
