package bootstrap

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/internal/event"
)

// lockServer runs hold.sh on this computer, with a lock file of its own.
type lockServer struct {
	t    *testing.T
	file string
	path string // PATH, if not this process's

	mu  sync.Mutex
	cut context.CancelFunc
	ran int
}

func (s *lockServer) Run(ctx context.Context, c remote.Cmd) (remote.Result, error) {
	if !c.Sudo || c.Timeout < time.Hour {
		s.t.Errorf("command %+v", c)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	s.cut = cancel
	s.ran++
	s.mu.Unlock()
	script := strings.ReplaceAll(c.Script, "/run/gpuctl.lock", s.file)
	cmd := exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", script, "sh"}, c.Args...)...)
	cmd.Stdin, cmd.Stdout, cmd.WaitDelay = c.Stdin, c.Stdout, time.Second
	if s.path != "" {
		cmd.Env = []string{"PATH=" + s.path}
	}
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return remote.Result{}, &remote.CutOffError{Name: c.Name, Err: context.Canceled}
	case errors.As(err, &exit):
		return remote.Result{}, &remote.ExitError{Name: c.Name, Code: exit.ExitCode()}
	}
	return remote.Result{}, err
}

// lose cuts the connection.
func (s *lockServer) lose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut()
}

func (s *lockServer) runs() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ran
}

func (s *lockServer) by(who string) hold {
	return hold{server: s, name: "server-1", who: who, beat: 10 * time.Millisecond, again: time.Millisecond, sink: event.SinkFunc(func(event.Event) {})}
}

func newLockServer(t *testing.T) *lockServer {
	return &lockServer{t: t, file: filepath.Join(t.TempDir(), "lock")}
}

func TestOneRunAtATime(t *testing.T) {
	s := newLockServer(t)
	_, release, err := s.by("ann@laptop, since noon").take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = s.by("bob@desk").take(t.Context())
	var held *HeldError
	if !errors.As(err, &held) || held.Server != "server-1" || held.Holder != "ann@laptop, since noon" {
		t.Fatalf("the second run: %v", err)
	}
	release()
	ctx, release, err := s.by("bob@desk").take(t.Context())
	if err != nil {
		t.Fatalf("after the first: %v", err)
	}
	if ctx.Err() != nil {
		t.Errorf("the second run has ended: %v", context.Cause(ctx))
	}
	release()
}

func TestALockGoesWithItsClient(t *testing.T) {
	s := newLockServer(t)
	ctx, kill := context.WithCancel(t.Context())
	_, release, err := s.by("ann").take(ctx)
	if err != nil {
		t.Fatal(err)
	}
	kill()
	release()
	// Not at once: the processes that hold the file end when their input does.
	eventually(t, func() bool {
		_, release, err := s.by("bob").take(t.Context())
		if err == nil {
			release()
		}
		return err == nil
	})
}

// A server that reboots forgets the lock; it is taken again, or another has it.
func TestALostLockIsTakenAgain(t *testing.T) {
	s := newLockServer(t)
	ctx, release, err := s.by("ann").take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	s.lose()
	eventually(t, func() bool { return s.runs() == 2 })
	if ctx.Err() != nil {
		t.Fatalf("a run that has its lock again ends: %v", context.Cause(ctx))
	}
}

func TestARunEndsWhenAnotherTookItsLock(t *testing.T) {
	s := newLockServer(t)
	mine := s.by("ann")
	retry := make(chan struct{})
	mine.server = runnerFunc(func(ctx context.Context, c remote.Cmd) (remote.Result, error) {
		select {
		case <-retry:
			return remote.Result{}, &remote.ExitError{Code: heldCode}
		default:
		}
		close(retry)
		_, _ = c.Stdout.Write([]byte("held\n"))
		return remote.Result{}, &remote.CutOffError{Err: errors.New("reboot")}
	})
	mine.again = time.Millisecond
	ctx, release, err := mine.take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	<-ctx.Done()
	if lockLost(ctx) == nil || !strings.Contains(lockLost(ctx).Error(), "another gpuctl works on this cluster") {
		t.Errorf("cause %v", context.Cause(ctx))
	}
}

func TestAServerWithoutFlockLocksNothing(t *testing.T) {
	s := newLockServer(t)
	s.path = t.TempDir()
	ctx, release, err := s.by("ann").take(t.Context())
	if err != nil || ctx.Err() != nil {
		t.Fatal(err, ctx.Err())
	}
	release()
}

func TestWhatAServerSaysOfTheHolderIsTame(t *testing.T) {
	f := &firstLine{taken: func() {}}
	_, _ = f.Write([]byte("\x1b[31mann\a" + strings.Repeat("x", 500) + "\nmore"))
	if got := f.text(); len(got) > 200 || strings.ContainsAny(got, "\x1b\a\n") || !strings.Contains(got, "ann") {
		t.Errorf("%q", got)
	}
}

type runnerFunc func(context.Context, remote.Cmd) (remote.Result, error)

func (f runnerFunc) Run(ctx context.Context, c remote.Cmd) (remote.Result, error) { return f(ctx, c) }

func eventually(t *testing.T, is func() bool) {
	t.Helper()
	limit := time.After(20 * time.Second)
	for tick := time.NewTicker(5 * time.Millisecond); !is(); {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatal("it never came")
		}
	}
}
