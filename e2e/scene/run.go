package scene

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// runLimit bounds one run of gpuctl; a whole cluster takes two minutes on two
// idle cores.
const runLimit = 12 * time.Minute

// Result is what a run of gpuctl came to.
type Result struct {
	Args           []string
	Code           int
	Stdout, Stderr string
	Took           time.Duration
}

// Process is a gpuctl that runs.
type Process struct {
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
	start          time.Time
	cancel         context.CancelFunc
	scene          *Scene
	done           chan struct{}
	err            error
}

// Start runs gpuctl in the scene's directory without waiting for it.
func (s *Scene) Start(args ...string) *Process {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), runLimit)
	p := &Process{cmd: exec.CommandContext(ctx, s.Binary, args...), start: time.Now(), cancel: cancel, scene: s, done: make(chan struct{})}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = s.Dir, &p.stdout, &p.stderr
	p.cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "NO_COLOR=1", "TMPDIR=" + os.TempDir(),
		"HOME=" + filepath.Join(s.Dir, "home"), "XDG_STATE_HOME=" + filepath.Join(s.Dir, "state"),
	}, s.Env...)
	p.cmd.WaitDelay = 5 * time.Second
	if err := p.cmd.Start(); err != nil {
		cancel()
		s.t.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p
}

// Kill ends the process as kill -9 does.
func (p *Process) Kill() {
	p.scene.t.Helper()
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.scene.t.Fatal(err)
	}
}

// Interrupt ends the process as Ctrl-C does.
func (p *Process) Interrupt() {
	p.scene.t.Helper()
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		p.scene.t.Fatal(err)
	}
}

// Wait waits for the process and returns what it came to; Code is -1 for one
// that was killed.
func (p *Process) Wait() Result {
	p.scene.t.Helper()
	<-p.done
	p.cancel()
	r := Result{Args: p.cmd.Args[1:], Code: p.cmd.ProcessState.ExitCode(), Stdout: p.stdout.String(), Stderr: p.stderr.String(), Took: time.Since(p.start)}
	var exit *exec.ExitError
	if p.err != nil && !errors.As(p.err, &exit) {
		p.scene.t.Fatalf("gpuctl %s: %v\n%s", strings.Join(r.Args, " "), p.err, r.Stderr)
	}
	p.scene.t.Logf("gpuctl %s: exit code %d after %s", strings.Join(r.Args, " "), r.Code, r.Took.Round(100*time.Millisecond))
	return r
}

// Run runs gpuctl to its end.
func (s *Scene) Run(args ...string) Result {
	s.t.Helper()
	return s.Start(args...).Wait()
}

// Must is Run for a run that has to end with the given exit code.
func (s *Scene) Must(code int, args ...string) Result {
	s.t.Helper()
	return s.Expect(code, s.Run(args...))
}

// Expect fails the test unless a run ended with the given exit code.
func (s *Scene) Expect(code int, r Result) Result {
	s.t.Helper()
	if r.Code != code {
		s.t.Fatalf("gpuctl %s: exit code %d, want %d\nstderr:\n%s\nstdout:\n%s", strings.Join(r.Args, " "), r.Code, code, end(r.Stderr, 60), end(r.Stdout, 40))
	}
	return r
}

// Decode reads the JSON that a run printed.
func (s *Scene) Decode(r Result, into any) {
	s.t.Helper()
	if err := json.Unmarshal([]byte(r.Stdout), into); err != nil {
		s.t.Fatalf("gpuctl %s printed no JSON: %v\n%s", strings.Join(r.Args, " "), err, end(r.Stdout, 20))
	}
}

// end is the last lines of text.
func end(text string, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(all) > lines {
		all = append([]string{"..."}, all[len(all)-lines:]...)
	}
	return strings.Join(all, "\n")
}
