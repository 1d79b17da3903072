// Package dockerd finds a Docker engine for the lab, or starts one of the
// lab's own where the host runs none.
package dockerd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Label marks every container, network and image of a lab; its value is the
// lab's id.
const Label = "gpuctl.lab"

// Engine is a Docker engine, spoken to by the docker command.
type Engine struct {
	// Host is the value for DOCKER_HOST; empty means docker's own default.
	Host string
	// Own says that the lab started this engine.
	Own bool
	// Fresh says that this call started it, so that nothing ran before.
	Fresh bool
}

// Find returns an engine: the lab's own one in dir if it runs, else the one
// that `docker info` reaches, else a new one in dir. The last needs root.
// An engine started here outlives the process and is found again by dir.
func Find(ctx context.Context, dir string) (*Engine, error) {
	d := daemon{dir: dir}
	own := &Engine{Host: "unix://" + d.socket(), Own: true}
	if own.answers(ctx) {
		return own, nil
	}
	host := &Engine{Host: os.Getenv("DOCKER_HOST")}
	if host.answers(ctx) {
		return host, nil
	}
	if os.Geteuid() != 0 {
		return nil, errors.New("no docker engine answers (`docker info`), and only root can start one")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("starting a docker engine: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("starting a docker engine: %w", err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return nil, fmt.Errorf("starting a docker engine: %w", err)
	}
	if own.answers(ctx) { // started by another process meanwhile
		return own, nil
	}
	if err := d.start(ctx, own); err != nil {
		return nil, fmt.Errorf("starting a docker engine: %w", err)
	}
	own.Fresh = true
	return own, nil
}

// Stop ends the lab's own engine in dir, if one runs. Its images stay.
func Stop(ctx context.Context, dir string) error {
	if err := (daemon{dir: dir}).stop(ctx); err != nil {
		return fmt.Errorf("stopping the docker engine in %s: %w", dir, err)
	}
	return nil
}

func (e *Engine) answers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if path, ok := strings.CutPrefix(e.Host, "unix://"); ok {
		if _, err := os.Stat(path); err != nil {
			return false
		}
	}
	out, err := e.Run(ctx, "info", "--format", "{{.ServerVersion}}")
	return err == nil && out != ""
}

// Run runs a docker command and returns its standard output without the
// trailing newline. The error holds what docker wrote to standard error.
func (e *Engine) Run(ctx context.Context, args ...string) (string, error) {
	return e.Pipe(ctx, nil, args...)
}

// Pipe is Run with standard input.
func (e *Engine) Pipe(ctx context.Context, stdin io.Reader, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := e.Command(ctx, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("docker %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSuffix(stdout.String(), "\n"), nil
}

// Command is the docker command with this engine as its target.
func (e *Engine) Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "docker", args...)
	// The classic builder needs no plugin; Debian's docker.io has no buildx.
	cmd.Env = append(os.Environ(), "DOCKER_BUILDKIT=0")
	if e.Host != "" {
		cmd.Env = append(cmd.Env, "DOCKER_HOST="+e.Host)
	}
	return cmd
}

// Lines is Run with the output cut into its non-empty lines.
func (e *Engine) Lines(ctx context.Context, args ...string) ([]string, error) {
	out, err := e.Run(ctx, args...)
	if err != nil {
		return nil, err
	}
	var lines []string
	for line := range strings.Lines(out) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines, nil
}
