package dockerd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// daemon is an engine of the lab's own: all its files lie in dir.
type daemon struct {
	dir string
}

func (d daemon) path(name string) string { return filepath.Join(d.dir, name) }
func (d daemon) socket() string          { return d.path("docker.sock") }

// start runs dockerd in a session of its own and waits until it answers.
func (d daemon) start(ctx context.Context, e *Engine) error {
	if err := install(ctx); err != nil {
		return err
	}
	if err := mountCgroups(); err != nil {
		return err
	}
	d.clearLeftovers()
	args := []string{
		"--data-root", d.path("data"), "--exec-root", d.path("exec"),
		"--host", "unix://" + d.socket(), "--pidfile", d.path("docker.pid"),
		// No docker0: labs have networks of their own, and a second engine
		// on a host would fight over its address.
		"--bridge", "none",
	}
	if !hasSysResource() {
		path, err := d.writeRuntime()
		if err != nil {
			return err
		}
		args = append(args, "--add-runtime", "lab="+path, "--default-runtime", "lab")
	}
	log, err := os.Create(d.path("dockerd.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command("dockerd", args...) // not bound to ctx: it outlives this process
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return d.waitUntilUp(ctx, e, ended)
}

func (d daemon) waitUntilUp(ctx context.Context, e *Engine, ended <-chan error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			return fmt.Errorf("dockerd ended: %v: %s", err, d.lastLog())
		case <-ctx.Done():
			return fmt.Errorf("dockerd does not answer: %w: %s", ctx.Err(), d.lastLog())
		case <-tick.C:
			if e.answers(ctx) {
				return nil
			}
		}
	}
}

// lastLog returns the last lines of dockerd's log, for an error message.
func (d daemon) lastLog() string {
	b, err := os.ReadFile(d.path("dockerd.log"))
	if err != nil {
		return "no log"
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], " | ")
}

// clearLeftovers removes what an engine that was killed left behind: a process
// id file with a number that may be another process's by now stops a new one.
func (d daemon) clearLeftovers() {
	for _, f := range []string{"docker.pid", "exec/containerd/containerd.pid"} {
		if pid, ok := d.process(f); ok {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			waitGone(pid, 5*time.Second)
		}
		_ = os.Remove(d.path(f))
	}
	_ = os.Remove(d.socket())
}

// stop ends the engine and the containers it runs.
func (d daemon) stop(ctx context.Context) error {
	pid, ok := d.process("docker.pid")
	if !ok {
		return nil
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		return err
	}
	limit := 30 * time.Second
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(deadline))
	}
	if !waitGone(pid, limit) {
		return fmt.Errorf("process %d has not ended after %s", pid, limit.Round(time.Second))
	}
	return nil
}

// process reads a process id file and says whether that process runs with a
// command line that names d's directory.
func (d daemon) process(file string) (pid int, ok bool) {
	b, err := os.ReadFile(d.path(file))
	if err != nil {
		return 0, false
	}
	pid, err = strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || pid <= 1 {
		return 0, false
	}
	cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return pid, err == nil && strings.Contains(string(cmdline), d.dir)
}

func waitGone(pid int, limit time.Duration) bool {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return true
		}
	}
	return false
}

// install brings dockerd where it is missing. Debian's and Ubuntu's package is
// docker.io.
func install(ctx context.Context) error {
	if _, err := exec.LookPath("dockerd"); err == nil {
		return nil
	}
	return Install(ctx, "docker.io")
}

// HasApt says whether Install can install anything here: this is root on Debian
// or Ubuntu.
func HasApt() bool {
	_, err := exec.LookPath("apt-get")
	return err == nil && os.Geteuid() == 0
}

// Install installs packages with apt-get.
func Install(ctx context.Context, packages ...string) error {
	steps := [][]string{
		{"apt-get", "update", "-q"},
		append([]string{"apt-get", "install", "-q", "-y", "--no-install-recommends"}, packages...),
	}
	for _, step := range steps {
		cmd := exec.CommandContext(ctx, step[0], step[1:]...)
		// docker.io's install script starts the service where it can; the
		// policy keeps it from failing where there is no init.
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", strings.Join(step, " "), err, out)
		}
	}
	return nil
}
