// Package recipe builds an artefact once and finds it again by the hash of
// what went into it, so that a second lab starts without building anything.
package recipe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Recipe names one artefact that is built once and then found by the hash of
// its inputs.
type Recipe struct {
	// Name says what the artefact is, e.g. "k3s". It becomes part of a file
	// name: letters, digits, dot, dash and underscore only.
	Name string
	// Inputs are files or directories whose content decides the artefact.
	// Directories are hashed recursively.
	Inputs []string
	// Salt is what decides the artefact and is in no file: versions, flags,
	// keys of other recipes.
	Salt string
	// Build fills the empty directory out.
	Build func(ctx context.Context, out string) error
}

// Cache is a directory of finished artefacts, one subdirectory per key.
type Cache struct {
	dir string
}

// Open finds the cache directory: $GPUCTL_LAB_CACHE, else
// $XDG_CACHE_HOME/gpuctl-lab, else ~/.cache/gpuctl-lab. It is made if absent.
func Open() (Cache, error) {
	dir := os.Getenv("GPUCTL_LAB_CACHE")
	if dir == "" {
		base := os.Getenv("XDG_CACHE_HOME")
		if base == "" {
			home, err := os.UserHomeDir()
			if err != nil {
				return Cache{}, fmt.Errorf("finding the lab cache: %w", err)
			}
			base = filepath.Join(home, ".cache")
		}
		dir = filepath.Join(base, "gpuctl-lab")
	}
	return At(dir)
}

// At uses dir as the cache and makes it if absent.
func At(dir string) (Cache, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return Cache{}, fmt.Errorf("opening cache %s: %w", dir, err)
	}
	if err := os.MkdirAll(abs, 0o755); err != nil {
		return Cache{}, fmt.Errorf("opening cache: %w", err)
	}
	return Cache{dir: abs}, nil
}

// Dir is the absolute path of the cache.
func (c Cache) Dir() string { return c.dir }

// Get returns the directory of a finished artefact and builds it if it is not
// there yet. The build works in a temporary directory that is renamed into
// place, so a directory that exists is complete. Processes that ask for the
// same key at once build it once: the others wait on a file lock.
func (c Cache) Get(ctx context.Context, r Recipe) (string, error) {
	key, err := c.key(r)
	if err != nil {
		return "", fmt.Errorf("hashing inputs of %s: %w", r.Name, err)
	}
	dir := filepath.Join(c.dir, key)
	if isDir(dir) {
		return dir, nil
	}
	unlock, err := lock(ctx, dir+".lock")
	if err != nil {
		return "", fmt.Errorf("waiting for the build of %s: %w", r.Name, err)
	}
	defer unlock()
	if isDir(dir) { // another process built it while this one waited
		return dir, nil
	}
	if err := build(ctx, r, dir); err != nil {
		return "", fmt.Errorf("building %s: %w", r.Name, err)
	}
	return dir, nil
}

// Key is the name under which the cache keeps the artefact of r: the recipe's
// name and a hash. It is empty if an input cannot be read; Get says why.
func (c Cache) Key(r Recipe) string {
	key, err := c.key(r)
	if err != nil {
		return ""
	}
	return key
}

func build(ctx context.Context, r Recipe, dir string) error {
	if r.Build == nil {
		return errors.New("the recipe has no build step")
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), ".build-"+r.Name+"-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if err := os.Chmod(tmp, 0o755); err != nil {
		return err
	}
	if err := r.Build(ctx, tmp); err != nil {
		return err
	}
	return os.Rename(tmp, dir)
}

// lock takes an exclusive lock on path and waits for it until ctx ends.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			f.Close()
			return nil, err
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, context.Cause(ctx)
		case <-tick.C:
		}
	}
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
