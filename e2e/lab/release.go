package lab

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/gpuctl/gpuctl/e2e/lab/mirror"
	"github.com/gpuctl/gpuctl/e2e/lab/standin"
)

// NextK3s is the version to which tests upgrade. It is the same code as
// K3sVersion under another name: what changes between two releases of k3s is
// not seen with it, only how gpuctl brings one in place of the other.
const NextK3s = "v1.34.5+k3s1"

// ServeNextK3s builds the stand-in under the name NextK3s, where it is not
// cached, and has the mirror serve it beside the first.
func (l *Lab) ServeNextK3s(ctx context.Context) error {
	src, err := sourceDir()
	if err != nil {
		return err
	}
	dir, err := l.cache.Get(ctx, standin.Recipe(src, NextK3s))
	if err != nil {
		return fmt.Errorf("building k3s %s: %w", NextK3s, err)
	}
	return mirror.WriteK3s(filepath.Join(l.mirrorDir(), "k3s"), NextK3s, filepath.Join(dir, "k3s"), "")
}
