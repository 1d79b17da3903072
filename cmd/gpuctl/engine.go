package main

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/klog/v2"

	"github.com/gpuctl/gpuctl/bootstrap"
	"github.com/gpuctl/gpuctl/bootstrap/sshconn"
	"github.com/gpuctl/gpuctl/charts"
	"github.com/gpuctl/gpuctl/internal/bundle"
	"github.com/gpuctl/gpuctl/internal/config"
	"github.com/gpuctl/gpuctl/internal/event"
	"github.com/gpuctl/gpuctl/internal/inventory"
	"github.com/gpuctl/gpuctl/internal/state"
)

// Engine is what the commands ask of package bootstrap.
type Engine interface {
	// Check looks at every machine and changes nothing.
	Check(context.Context, bootstrap.CheckOptions) (bootstrap.CheckResult, error)
	// Doctor says what is wrong in a living cluster.
	Doctor(context.Context, bootstrap.DoctorOptions) (bootstrap.DoctorResult, error)
	// Bundle writes what the doctor saw, without secrets, addresses and names.
	Bundle(io.Writer, bootstrap.DoctorResult) error
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
	// Trust asks the server for the cluster's id, the host keys of its machines and the kubeconfig.
	Trust(context.Context) (bootstrap.TrustResult, error)
	// Tunnel forwards a local port to the API until ctx ends.
	Tunnel(ctx context.Context, l net.Listener, context string, ready func(kubeconfig []byte) error) error
	// Reset takes nodes or the whole cluster apart.
	Reset(context.Context, bootstrap.ResetOptions) (bootstrap.ApplyResult, error)
	// SSH runs a command on a machine, or a shell, and returns its exit code.
	SSH(ctx context.Context, machine string, command []string, stdio bootstrap.Stdio) (int, error)
	nodeEngine
	costEngine
	etcdEngine
	// GPUs lists every GPU, by machines and cluster.
	GPUs(context.Context) (bootstrap.GPUsResult, error)
	// Close ends all connections.
	Close() error
}

// engineDeps are what an engine is made of.
type engineDeps struct {
	Config    config.Config
	Inventory inventory.Inventory
	// Nodes are the machines that may change; none means all.
	Nodes []string
	// Force lets versions meet that no tested set has together.
	Force bool
	// Bundle is an offline bundle; nil is none.
	Bundle *bundle.Bundle
	State  state.Dir
	Sink   event.Sink
	Log    *slog.Logger
	// Secret registers a value that must not appear in any record.
	Secret func(string)
	// RetryFor is how long a machine that does not answer is tried again.
	RetryFor time.Duration
	// Ask is what connecting asks the user.
	Ask asker
}

// engine is the real one with the connections to jump hosts that it uses.
type engine struct {
	*bootstrap.Engine
	dialer *sshconn.Dialer
}

// newEngine makes the real one.
func newEngine(d engineDeps) (Engine, error) {
	set, err := charts.Load(d.Config.Spec.Set)
	if err != nil {
		return nil, &usageError{err}
	}
	owner, err := d.State.ID()
	if err != nil {
		return nil, err
	}
	// client-go logs by klog, to standard error unless told otherwise: that would tear the live view.
	klog.SetSlogLogger(d.Log)
	dialer := sshconn.NewDialer(dialOptions(d))
	kept, err := d.State.ReadKubeconfig()
	if err != nil {
		return nil, err
	}
	id, err := d.State.ClusterID()
	if err != nil {
		return nil, err
	}
	e, err := bootstrap.New(bootstrap.Settings{
		Config: d.Config, Set: set, Inventory: d.Inventory, Nodes: d.Nodes, Dial: dialWith(dialer), Sink: d.Sink, Log: d.Log,
		Secret: d.Secret, Read: d.Ask.read, Key: rand.Text(), Owner: owner, Who: whoAmI(), KnownHosts: d.State.KnownHosts(),
		ChartCache: filepath.Join(d.State.Path(), "charts"), Kubeconfig: kept, Force: d.Force, Bundle: d.Bundle,
		ClusterID: id, FreshID: strings.ToLower(rand.Text()), KeepID: d.State.KeepClusterID,
	})
	if err != nil {
		return nil, &usageError{err}
	}
	return engine{e, dialer}, nil
}

// whoAmI is user@host, as far as this computer knows.
func whoAmI() string {
	name, host := "somebody", "a computer without a name"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	return name + "@" + host
}

// Close ends the connections to machines, then those to jump hosts.
func (e engine) Close() error { return errors.Join(e.Engine.Close(), e.dialer.Close()) }
