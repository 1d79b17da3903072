// Package remote says what it means to run a command on a machine. It knows
// nothing of SSH: package sshconn implements it, tests fake it.
package remote

import (
	"context"
	"io"
	"net"
	"time"
)

// Cmd is one command for one machine, as a value. The script runs under
// /bin/sh (POSIX; dash and busybox included), whatever the login shell is, in
// the directory /, with umask 022, LC_ALL=C and the sbin directories in PATH.
type Cmd struct {
	// Name says in a few words what the command does ("probe", "install k3s"); it appears in errors and logs.
	Name string
	// Script is POSIX sh. It reaches the machine on standard input, never in an argument list.
	Script string
	// Args become $1, $2, ... of the script. They may be seen by other users of the machine: no secrets.
	Args []string
	// Env are variables set for the script, delivered on standard input like the script; secrets may stand here.
	Env map[string]string
	// Stdin is what the script reads after itself; nil means empty. It may still be read from for a moment after Run
	// has returned, where the script ended before its input did.
	Stdin io.Reader
	// Sudo runs the script as root: directly for root, by sudo for others.
	Sudo bool
	// Secrets are values that are replaced by "********" in errors, logs and captured output used in errors.
	Secrets []string
	// Timeout bounds the command; 0 means 60 seconds. The remote process group is ended when it passes.
	Timeout time.Duration
	// Stdout, when set, receives standard output as it comes (a stream); Result.Stdout stays empty then.
	Stdout io.Writer
	// MaxOutput bounds captured stdout and stderr in bytes each; 0 means 4 MiB. More is an error.
	MaxOutput int
}

// Result is what a finished command printed.
type Result struct {
	Stdout []byte
	Stderr []byte
}

// Runner runs commands on one machine.
//
// Run returns nil only when the script ended with exit code 0. Errors:
//   - *ExitError: the script ended with another code; the result is filled.
//   - *CutOffError: the connection was lost, or the context or the timeout
//     ended, after the command had been sent: its result is unknown. Observe
//     again, never repeat blindly.
//   - *ConnectError: the machine was not reached; nothing was sent.
//   - *SudoError: root rights were not to be had; the script did not run.
type Runner interface {
	Run(ctx context.Context, c Cmd) (Result, error)
}

// Host is a connection to one machine.
type Host interface {
	Runner
	// Dial opens a connection as seen from the machine ("tcp", "127.0.0.1:6443").
	// It returns a *ForwardingError where the machine's sshd forbids forwarding and no relay is possible.
	Dial(ctx context.Context, network, address string) (net.Conn, error)
	// Close ends the connection and everything on it.
	Close() error
}
