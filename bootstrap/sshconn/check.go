package sshconn

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
)

// apiAddress is the Kubernetes API as a server sees it: what forwarding is needed for.
const apiAddress = "127.0.0.1:6443"

// checkLimit bounds each question that is asked once the login is done.
const checkLimit = 20 * time.Second

// Checkup is what one machine answered, step by step.
type Checkup struct {
	// Resolved is what ssh_config and the target come to; nil where they could not be read.
	Resolved *Resolved
	// Hops are the jump hosts on the way, the nearest first.
	Hops []HopCheckup
	// Trace is what was tried on the machine itself and what it got.
	Trace []remote.Attempt
	// Login is what the login learned; nil where there was none.
	Login *Info
	// Sudo says how one becomes root: "root", "free", "password", or in words why not.
	Sudo string
	// Forwarding says how the Kubernetes API is reached through this connection.
	Forwarding string
	// Err is why the machine is of no use; nil when all is well. It is a
	// *remote.ConnectError, *remote.SudoError or *remote.ForwardingError where it is one of those.
	Err error
}

// HopCheckup is one jump host.
type HopCheckup struct {
	Host  string
	Trace []remote.Attempt
	Err   error
}

// Check connects to a machine and asks for root and forwarding. It changes
// nothing there and never fails: what went wrong is in the result.
func (d *Dialer) Check(ctx context.Context, t Target) Checkup {
	var c Checkup
	resolved, err := d.Resolve(ctx, t)
	if err != nil {
		c.Err = err
		return c
	}
	c.Resolved = &resolved
	conn, err := d.Dial(ctx, t)
	c.Hops = d.hopCheckups(resolved.Jump)
	if err != nil {
		var refused *remote.ConnectError
		if errors.As(err, &refused) {
			c.Trace = refused.Trace
		}
		c.Err = err
		return c
	}
	defer func() { _ = conn.Close() }() // all that was asked has been answered
	info := conn.Info()
	c.Login, c.Trace = &info, conn.Trace()
	var sudo, forwarding error
	c.Sudo, sudo = conn.checkSudo(ctx)
	if conn.isLost() || noShell(sudo) {
		c.Err = sudo
		return c
	}
	c.Forwarding, forwarding = conn.checkForwarding(ctx)
	if c.Err = sudo; c.Err == nil {
		c.Err = forwarding
	}
	return c
}

// hopCheckups tells of the jump hosts that were tried for a chain.
func (d *Dialer) hopCheckups(jump []string) []HopCheckup {
	var out []HopCheckup
	for i, name := range jump {
		d.mu.Lock()
		h := d.hops[strings.Join(jump[:i+1], ",")]
		d.mu.Unlock()
		if h == nil {
			continue // the way ended before it, or goes by another configuration
		}
		<-h.ready
		c := HopCheckup{Host: name, Err: h.err}
		var refused *remote.ConnectError
		switch {
		case h.conn != nil:
			c.Trace = h.conn.Trace()
		case errors.As(h.err, &refused):
			c.Trace = slices.Clone(refused.Trace)
		}
		out = append(out, c)
	}
	return out
}

// checkSudo becomes root once.
func (c *Conn) checkSudo(ctx context.Context) (string, error) {
	_, err := c.Run(ctx, remote.Cmd{Name: "sudo", Script: "true\n", Sudo: true, Timeout: checkLimit})
	if err != nil {
		return "", err
	}
	return string(c.sudo.known()), nil
}

// checkForwarding asks for a connection to the API. That nothing listens there
// yet says that forwarding itself is allowed.
func (c *Conn) checkForwarding(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	conn, err := c.dialRaw(ctx, "tcp", apiAddress)
	how := "direct"
	if c.relayed.Load() {
		how = "relayed"
	}
	if err == nil {
		_ = conn.Close() // only the answer counts
		return how, nil
	}
	var refused *ssh.OpenChannelError
	var none *remote.ForwardingError
	switch {
	case errors.As(err, &none):
		return "none", none
	case how == "relayed", errors.As(err, &refused) && refused.Reason == ssh.ConnectionFailed:
		return how, nil
	}
	return "", err
}

func noShell(err error) bool {
	var refused *remote.ConnectError
	return errors.As(err, &refused)
}
