package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/gpuctl/gpuctl/bootstrap"
	"github.com/gpuctl/gpuctl/internal/config"
	"github.com/gpuctl/gpuctl/internal/event"
	"github.com/gpuctl/gpuctl/internal/inventory"
	"github.com/gpuctl/gpuctl/internal/state"
)

// Engine is what the commands ask of package bootstrap.
type Engine interface {
	// Check looks at every machine and changes nothing.
	Check(context.Context) (bootstrap.CheckResult, error)
	// Plan also says what Apply would do.
	Plan(context.Context) (bootstrap.PlanResult, error)
	// Apply observes, plans, applies, verifies and proves. The result is filled also when it fails.
	Apply(context.Context, bootstrap.ApplyOptions) (bootstrap.ApplyResult, error)
	// Smoke proves the GPUs of nodes.
	Smoke(context.Context, bootstrap.SmokeOptions) (bootstrap.SmokeResult, error)
	// Status asks the cluster.
	Status(context.Context) (bootstrap.StatusResult, error)
	// Kubeconfig is the administrator's kubeconfig.
	Kubeconfig(context.Context) ([]byte, error)
	// Reset takes nodes or the whole cluster apart.
	Reset(context.Context, bootstrap.ResetOptions) (bootstrap.ApplyResult, error)
	// SSH runs a command on a machine, or a shell, and returns its exit code.
	SSH(ctx context.Context, machine string, command []string, stdio bootstrap.Stdio) (int, error)
	// Close ends all connections.
	Close() error
}

// engineDeps are what an engine is made of.
type engineDeps struct {
	Config    config.Config
	Inventory inventory.Inventory
	// Nodes are the machines that may change; none means all.
	Nodes []string
	State state.Dir
	Sink  event.Sink
	Log   *slog.Logger
	// SudoPassword is empty where none is configured.
	SudoPassword string
	// Secret registers a value that must not appear in any record.
	Secret func(string)
	// Consent to sending the sudo password to a machine seen for the first time.
	AcceptNewHostKeys bool
}

// newEngine makes the real one.
func newEngine(engineDeps) (Engine, error) {
	return nil, errors.New("no engine is wired yet")
}
