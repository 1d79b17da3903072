// Package scene is what tests of the gpuctl binary share: a lab, machines that
// live as long as a test, a gpuctl.yaml for them, runs of the binary with a home
// of its own, and the state that a cluster ended in. The binary is driven as a
// user drives it; what a test asserts is read past it.
package scene

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/gpuctl/gpuctl/e2e/lab"
)

// buildLimit bounds building the binary from nothing.
const buildLimit = 10 * time.Minute

// Stage is the lab and the binary, which all tests of a process share.
type Stage struct {
	Lab *lab.Lab
	// Binary is the gpuctl under test.
	Binary string

	tmp string
	own bool
}

// Open brings the lab up and builds the binary. $GPUCTL_LAB_ID names a lab that
// stays up afterwards, $GPUCTL_BIN a binary that is built already.
func Open(ctx context.Context, out io.Writer) (*Stage, error) {
	id := os.Getenv("GPUCTL_LAB_ID")
	s := &Stage{own: id == "" && !Keep()}
	if id == "" {
		id = "e2e"
	}
	var err error
	if s.Binary, s.tmp, err = binary(ctx, out); err != nil {
		return nil, err
	}
	if s.Lab, err = lab.Up(ctx, lab.Options{ID: id, Out: out}); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.tmp))
	}
	return s, nil
}

// Close takes down what Open brought up.
func (s *Stage) Close(ctx context.Context) error {
	err := os.RemoveAll(s.tmp)
	if s.own {
		err = errors.Join(err, s.Lab.Down(ctx))
	}
	return err
}

// Keep says that machines stay after a test, to be looked at: $GPUCTL_LAB_KEEP.
func Keep() bool { return os.Getenv("GPUCTL_LAB_KEEP") == "1" }

// binary returns the program under test, and a directory to remove if it was
// built here.
func binary(ctx context.Context, out io.Writer) (path, tmp string, err error) {
	if path = os.Getenv("GPUCTL_BIN"); path != "" {
		path, err = filepath.Abs(path)
		return path, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, buildLimit)
	defer cancel()
	root, err := filepath.Abs("..")
	if err != nil {
		return "", "", err
	}
	if tmp, err = os.MkdirTemp("", "gpuctl-e2e-"); err != nil {
		return "", "", err
	}
	start := time.Now()
	path = filepath.Join(tmp, "gpuctl")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, "./cmd/gpuctl")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return "", "", errors.Join(fmt.Errorf("building gpuctl: %w: %s", err, said.Bytes()), os.RemoveAll(tmp))
	}
	fmt.Fprintf(out, "%8s  gpuctl\n", time.Since(start).Round(10*time.Millisecond))
	return path, tmp, nil
}
