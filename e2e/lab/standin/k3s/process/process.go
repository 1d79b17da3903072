// Package process runs the programs of one k3s as children of its process:
// they die with it, except the container shims that containerd leaves behind.
package process

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"
)

// Child is a program to run.
type Child struct {
	Name string   // component name, as argv[0] and in the log
	Path string   // executable; Name beside the running executable if empty
	Args []string // without argv[0]
	Env  []string // added to the environment
	Log  io.Writer
	// Grace is how long the program may take to end after SIGTERM before it is
	// killed; zero kills at once.
	Grace time.Duration
	// Exited is the word for the end in the log, "<name> exited" if empty.
	Exited string
}

// Group runs children until the first of them ends or the context does.
type Group struct {
	stop  context.CancelCauseFunc
	start chan func()
	wg    sync.WaitGroup
}

// NewGroup makes a group; stop is called with the reason when a child ends.
// The children are started by one thread that lives as long as the group:
// they get a signal when that thread, and so this process, dies.
func NewGroup(stop context.CancelCauseFunc) *Group {
	g := &Group{stop: stop, start: make(chan func())}
	go func() {
		runtime.LockOSThread()
		for f := range g.start {
			f()
		}
	}()
	return g
}

// Run starts the child. It is ended when ctx is.
func (g *Group) Run(ctx context.Context, c Child) error {
	if c.Path == "" {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		c.Path = filepath.Join(filepath.Dir(self), c.Name)
	}
	if c.Log == nil {
		c.Log = os.Stderr
	}
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Args[0] = c.Name
	cmd.Env = append(os.Environ(), c.Env...)
	cmd.Env = without(cmd.Env, "NOTIFY_SOCKET")
	cmd.Stdout, cmd.Stderr = c.Log, c.Log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	logrus.Infof("Running %s %s", c.Name, strings.Join(c.Args, " "))
	started := make(chan error)
	g.start <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		return fmt.Errorf("starting %s: %w", c.Name, err)
	}
	g.wg.Add(1)
	go g.watch(ctx, c, cmd)
	return nil
}

func (g *Group) watch(ctx context.Context, c Child, cmd *exec.Cmd) {
	defer g.wg.Done()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		g.stop(fmt.Errorf("%s: %w", c.word(), orZero(err)))
		return
	case <-ctx.Done():
	}
	if c.Grace > 0 {
		cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
			return
		case <-time.After(c.Grace):
		}
	}
	cmd.Process.Kill()
	<-ended
}

// Wait returns when all children have ended.
func (g *Group) Wait() { g.wg.Wait() }

func (c Child) word() string {
	if c.Exited != "" {
		return c.Exited
	}
	return c.Name + " exited"
}

type exitedZero struct{}

func (exitedZero) Error() string { return "exit status 0" }

func orZero(err error) error {
	if err == nil {
		return exitedZero{}
	}
	return err
}

func without(env []string, name string) []string {
	out := env[:0]
	for _, kv := range env {
		if !strings.HasPrefix(kv, name+"=") {
			out = append(out, kv)
		}
	}
	return out
}
