package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/agent"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/config"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/files"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/host"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/layout"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/notify"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/process"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/server"
	"github.com/sirupsen/logrus"
	"k8s.io/component-base/version"
)

// command runs what k3s's subcommands do.
func command(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("no command given")
	}
	switch args[0] {
	case "server":
		return run(ctx, args, "server requires additional privilege when not run with --rootless and/or --disable-agent", runServer)
	case "agent":
		return run(ctx, args, "agent requires additional privilege when not run with --rootless", runAgent)
	case "token":
		return tokenCommand(ctx, args[1:])
	case "etcd-snapshot":
		return snapshotCommand(ctx, args[1:])
	case "certificate":
		return certificateCommand(args[1:])
	}
	return fmt.Errorf("the lab's stand-in does not imitate k3s %s", args[0])
}

// usageError is a command line that the command does not understand.
type usageError struct {
	cause error
	text  string
}

func (e *usageError) Error() string { return e.cause.Error() }

// unit is what server and agent have in common.
type unit struct {
	options *config.Options
	data    layout.Data
	id      host.Identity
	env     host.Environment
	group   *process.Group
}

// run reads the options, runs the unit until it is told to end, and waits for
// its children. An end that comes from inside is not an error: k3s exits 0.
func run(ctx context.Context, args []string, privilege string, start func(context.Context, *unit) error) error {
	o, err := config.Parse(args[0], args[1:], os.Getenv)
	var unknown *config.UnknownFlagError
	if errors.As(err, &unknown) {
		return &usageError{err, usage(args[0])}
	}
	if err != nil {
		return err
	}
	for _, key := range o.Skipped {
		logrus.Warnf("Unknown flag %s found in config.yaml, skipping\n", key)
	}
	if os.Geteuid() != 0 {
		return errors.New(privilege + ": not running as root")
	}
	if o.Bool("debug") {
		logrus.SetLevel(logrus.DebugLevel)
	}
	id, err := host.Identify(o)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	u := &unit{
		options: o, data: layout.Data(o.String("data-dir")), id: id, env: host.Look(),
		group: process.NewGroup(func(reason error) {
			if ctx.Err() == nil {
				logrus.Errorf("Shutdown request received: %q", reason)
			}
			stop(reason)
		}),
	}
	err = start(ctx, u)
	if err == nil {
		<-ctx.Done()
	}
	stop(err)
	u.group.Wait()
	return ended(ctx, err)
}

// ended tells an error at the start from an end that was asked for.
func ended(ctx context.Context, err error) error {
	var waiting *agent.Waiting
	var shutdown *shutdownError
	switch {
	case errors.As(err, &waiting):
		return err
	case errors.As(err, &shutdown):
		logrus.Errorf("Shutdown request received: %q", shutdown.cause.Error())
		return nil
	case errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(ctx)) && !errors.Is(err, errStart):
		return nil
	}
	return err
}

// errStart marks errors of the first steps, which are fatal.
var errStart = errors.New("")

type startError struct{ cause error }

func (e *startError) Error() string        { return e.cause.Error() }
func (e *startError) Is(target error) bool { return target == errStart }
func (e *startError) Unwrap() error        { return e.cause }

// shutdownError is a fault of the node half: k3s shuts down and exits 0.
type shutdownError struct{ cause error }

func (e *shutdownError) Error() string { return e.cause.Error() }

func runServer(ctx context.Context, u *unit) error {
	logrus.Infof("Starting k3s %s (standin0)", version.Get().GitVersion)
	s := &server.Server{Options: u.options, Data: u.data, ID: u.id, Env: u.env, Group: u.group}
	if u.options.Bool("cluster-reset") {
		if err := s.Reset(ctx); err != nil {
			return &startError{err}
		}
		return &shutdownError{server.ErrReset}
	}
	if err := s.Start(ctx); err != nil {
		if server.Shutdown(err) {
			return &shutdownError{err}
		}
		return &startError{err}
	}
	up := make(chan struct{})
	failed := make(chan error, 1)
	go func() {
		n := u.node("https://127.0.0.1:6443", s.Token(), up)
		if err := n.Run(ctx); err != nil && ctx.Err() == nil {
			failed <- &shutdownError{err}
		}
	}()
	if err := s.Wait(ctx); err != nil {
		return err
	}
	close(up)
	logrus.Info("k3s is up and running")
	if err := notify.Ready(); err != nil {
		return err
	}
	s.Ready()
	s.Control(ctx)
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

func runAgent(ctx context.Context, u *unit) error {
	token, err := server.TokenOption(u.options, "token")
	if err != nil {
		return &startError{err}
	}
	address := u.options.String("server")
	if token == "" && !files.Exists(u.data.Agent("client-kubelet.crt")) {
		return &startError{errors.New("--token is required")}
	}
	if address == "" {
		return &startError{errors.New("--server is required")}
	}
	logrus.Infof("Starting k3s agent %s (standin0)", version.Get().GitVersion)
	target, err := url.Parse(address)
	if err != nil {
		return &startError{err}
	}
	host := target.Host
	if target.Port() == "" {
		host = net.JoinHostPort(target.Hostname(), "443")
	}
	balancer := &agent.Balancer{File: u.data.Agent("etc/k3s-agent-load-balancer.json"), Default: host}
	port := u.options.String("lb-server-port")
	if err := files.Dir(u.data.Agent("etc"), 0o700); err != nil {
		return err
	}
	if err := balancer.Run(ctx, port); err != nil {
		return &startError{err}
	}
	scheme, _, _ := strings.Cut(address, "://")
	up := make(chan struct{})
	close(up) // the certificates come only from a server whose API is up
	n := u.node(scheme+"://127.0.0.1:"+port, token, up)
	n.Shown = address
	if scheme != "https" {
		n.Shown = n.URL
	}
	if err := n.Run(ctx); err != nil {
		var waiting *agent.Waiting
		if ctx.Err() == nil && !errors.As(err, &waiting) {
			return &shutdownError{err}
		}
		return err
	}
	logrus.Info("k3s agent is up and running")
	go n.Follow(ctx, balancer)
	return notify.Ready()
}

func (u *unit) node(url, token string, up <-chan struct{}) *agent.Node {
	return &agent.Node{
		Options: u.options, Data: u.data, ID: u.id, Env: u.env, Group: u.group,
		URL: url, Shown: url, Token: token, API: up,
	}
}

// usage lists the flags of a command.
func usage(command string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "NAME:\n   k3s %s\n\nUSAGE:\n   k3s %s [OPTIONS]\n\nOPTIONS:\n", command, command)
	role := config.Server
	if command == "agent" {
		role = config.Agent
	}
	for _, f := range config.Flags() {
		if f.Role&role != 0 {
			fmt.Fprintf(&b, "   --%s\n", f.Name)
		}
	}
	return b.String()
}
