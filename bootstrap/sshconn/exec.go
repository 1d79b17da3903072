package sshconn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
)

const (
	defaultTimeout = time.Minute
	defaultOutput  = 4 << 20
	// killTimeout bounds the command that ends another.
	killTimeout = 10 * time.Second
	// runFrameWait is how long an aborted command may take to say which process it is.
	runFrameWait = 3 * time.Second
)

// Run implements remote.Runner.
func (c *Conn) Run(ctx context.Context, cmd remote.Cmd) (remote.Result, error) {
	if err := checkCmd(cmd); err != nil {
		return remote.Result{}, fmt.Errorf("%s: %w", cmd.Name, err)
	}
	timeout := cmd.Timeout
	if timeout == 0 {
		timeout = defaultTimeout
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no end within %s: %w", timeout, context.DeadlineExceeded))
	defer cancel()
	if !cmd.Sudo {
		return c.attempt(ctx, cmd, c.slots, sudoRoot, "", nil)
	}
	return c.runAsRoot(ctx, cmd)
}

// runAsRoot runs a command by the way to root that is known, or finds it with
// this command. A password is asked for only when the machine wants one.
func (c *Conn) runAsRoot(ctx context.Context, cmd remote.Cmd) (remote.Result, error) {
	mode, err := c.sudo.begin(ctx)
	if err != nil {
		return remote.Result{}, fmt.Errorf("%s: not sent: %w", cmd.Name, err)
	}
	if err := c.sudoError(cmd.Name, mode, ""); err != nil {
		return remote.Result{}, err
	}
	if mode != sudoUnknown {
		return c.attempt(ctx, cmd, c.slots, mode, c.sudo.password, nil)
	}
	turn := &sudoTurn{state: c.sudo, canAsk: c.opts.SudoPassword != nil}
	defer turn.end()
	res, err := c.attempt(ctx, cmd, c.slots, sudoUnknown, "", turn.heard)
	if !turn.mustAsk() {
		return res, err
	}
	password, err := c.askPassword(ctx)
	if err != nil {
		return remote.Result{}, fmt.Errorf("%s: %w", cmd.Name, err)
	}
	if password == "" {
		return res, c.sudoError(cmd.Name, sudoNeeded, "")
	}
	return c.attempt(ctx, cmd, c.slots, sudoUnknown, password, turn.heard)
}

// attempt sends one command and waits for its end. heard, when set, is called
// with the machine's word about sudo as soon as it comes. The slot is given
// back when the machine has closed the channel, not before: until then it counts there.
func (c *Conn) attempt(ctx context.Context, cmd remote.Cmd, slots chan struct{}, mode sudoMode, password string, heard func(sudoMode)) (remote.Result, error) {
	mark := newMark()
	prefix, err := encode(cmd, mark, mode, password)
	if err != nil {
		return remote.Result{}, fmt.Errorf("%s: %w", cmd.Name, err)
	}
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		return remote.Result{}, fmt.Errorf("%s: not sent: %w", cmd.Name, context.Cause(ctx))
	}
	ch, reqs, err := c.openSession(ctx)
	if err != nil {
		<-slots
		return remote.Result{}, fmt.Errorf("%s: %w", cmd.Name, err)
	}
	x := newExchange(cmd, mark, ch)
	defer func() {
		_ = ch.Close() // may be closed already
		go func() {
			<-x.gone
			<-slots
		}()
	}()
	x.heard = heard
	if password != "" {
		x.secrets = append(x.secrets, password)
	}
	if err := x.begin(prefix, reqs, mode == sudoUnknown); err != nil {
		return remote.Result{}, fmt.Errorf("%s: %w", cmd.Name, c.unreached(err))
	}
	c.stats.commands.Add(1)
	cause := x.wait(ctx)
	if cause != nil {
		c.end(x)
		return x.result(), &remote.CutOffError{Host: c.host, Name: cmd.Name, Stderr: x.stderrTail(), Err: cause}
	}
	return x.result(), c.verdict(x, mode)
}

// verdict turns a finished exchange into the error of Run.
func (c *Conn) verdict(x *exchange, mode sudoMode) error {
	name := x.cmd.Name
	if x.started() {
		if x.exit == nil {
			return &remote.CutOffError{Host: c.host, Name: name, Stderr: x.stderrTail(), Err: c.lostCause()}
		}
		if x.exit.code == 0 && x.exit.signal == "" {
			return nil
		}
		return &remote.ExitError{
			Host: c.host, Name: name, Code: x.exit.code, Signal: x.exit.signal,
			Stdout: remote.Tail(x.stdout.bytes(), x.secrets), Stderr: x.stderrTail(),
		}
	}
	if said, detail := x.sudo(); said != sudoUnknown {
		if err := c.sudoError(name, said, detail); err != nil {
			return err
		}
	}
	if x.exit == nil {
		return &remote.CutOffError{Host: c.host, Name: name, Err: c.lostCause()}
	}
	noise := x.noise()
	if x.cmd.Sudo && mode != sudoRoot && mode != sudoUnknown {
		return &remote.SudoError{Host: c.host, User: c.user, Name: name, Kind: remote.SudoNotAllowed, Detail: noise}
	}
	return &remote.ConnectError{
		Host: c.host, Address: c.address, Kind: remote.NoShell,
		Detail: fmt.Sprintf("logged in, but the account runs no commands (exit code %d): %s", x.exit.code, noise),
	}
}

// end stops what still runs on the machine for x, as the user it runs as.
func (c *Conn) end(x *exchange) {
	if x.exit != nil || c.isLost() {
		return
	}
	select {
	case <-x.running:
	case <-x.outDone:
	case <-time.After(runFrameWait):
	}
	pid, session, ok := x.process()
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	kill := remote.Cmd{Name: "end " + x.cmd.Name, Script: killProgram, Args: []string{pid, session}, Sudo: x.cmd.Sudo}
	mode, password := sudoRoot, ""
	if kill.Sudo {
		mode, password = c.sudo.known(), c.sudo.password
	}
	if _, err := c.attempt(ctx, kill, c.reserve, mode, password, nil); err != nil {
		c.opts.logger().Warn("a command that was given up may still run", "machine", c.host, "command", x.cmd.Name, "error", err)
	}
}

// overWait bounds the wait for the end of a transport whose channels have ended.
const overWait = time.Second

// lostCause says why a command has no exit code.
func (c *Conn) lostCause() error {
	// When a connection ends its channels end a moment before it knows; whoever
	// asks next must find it lost.
	select {
	case <-c.over:
	case <-time.After(overWait):
	}
	if err := c.Lost(); err != nil {
		return err
	}
	return errors.New("the machine closed the channel without an exit code")
}
