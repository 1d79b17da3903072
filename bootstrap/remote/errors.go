package remote

import (
	"errors"
	"fmt"
	"net"
	"strings"
)

// ExitError says that a script ran and ended with an exit code other than 0,
// or was ended by a signal.
type ExitError struct {
	// Host is the machine as the user named it; may be empty.
	Host string
	// Name is Cmd.Name.
	Name string
	// Code is the exit code; 128+n where signal n ended the script.
	Code int
	// Signal is the name of the signal that ended the script ("KILL"), else empty.
	Signal string
	// Stdout and Stderr are the last 8 KiB of each stream, with Cmd.Secrets masked.
	Stdout, Stderr []byte
}

// Error names the command, its exit code and the last lines of standard error.
func (e *ExitError) Error() string {
	what := fmt.Sprintf("exit code %d", e.Code)
	if e.Signal != "" {
		what = "ended by signal " + e.Signal
	}
	text := prefix(e.Host) + e.Name + ": " + what
	if tail := lastLines(e.Stderr, 5); tail != "" {
		return text + ": " + tail
	}
	if tail := lastLines(e.Stdout, 5); tail != "" {
		return text + ": " + tail
	}
	return text
}

// ExitCode returns the exit code of an *ExitError in err's chain, 0 for nil and -1 for any other error.
func ExitCode(err error) int {
	if err == nil {
		return 0
	}
	var exit *ExitError
	if errors.As(err, &exit) {
		return exit.Code
	}
	return -1
}

// CutOffError says that a command was sent and its result is unknown: the
// connection was lost, or the context or the timeout ended. Whoever sees it
// must observe the machine again before doing anything twice.
type CutOffError struct {
	Host string
	Name string
	// Stderr is the last 8 KiB that arrived, with Cmd.Secrets masked.
	Stderr []byte
	// Err is the cause: context.DeadlineExceeded, context.Canceled or the transport's error.
	Err error
}

func (e *CutOffError) Error() string {
	return prefix(e.Host) + e.Name + ": cut off, result unknown: " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *CutOffError) Unwrap() error { return e.Err }

// UnknownResult tells whoever walks a plan to observe before deciding.
func (e *CutOffError) UnknownResult() bool { return true }

// SudoKind says why root rights were not to be had.
type SudoKind string

const (
	// SudoPasswordNeeded: sudo asks for a password and none is configured.
	SudoPasswordNeeded SudoKind = "password-needed"
	// SudoWrongPassword: sudo refused the configured password. It was tried once and is not tried again on this connection.
	SudoWrongPassword SudoKind = "wrong-password"
	// SudoNotAllowed: sudo's rules do not let this user become root, with or without a password.
	SudoNotAllowed SudoKind = "not-allowed"
	// SudoAbsent: the user is not root and the machine has no sudo.
	SudoAbsent SudoKind = "absent"
)

// SudoError says that a command that needed root did not run.
type SudoError struct {
	Host string
	// User is the login name.
	User string
	Name string
	Kind SudoKind
	// Detail is what sudo said; may be empty.
	Detail string
}

func (e *SudoError) Error() string {
	text := prefix(e.Host) + e.Name + ": "
	switch e.Kind {
	case SudoPasswordNeeded:
		text += fmt.Sprintf("user %s cannot sudo without a password", e.User)
	case SudoWrongPassword:
		text += fmt.Sprintf("sudo refused the password of user %s", e.User)
	case SudoAbsent:
		text += fmt.Sprintf("user %s is not root and there is no sudo", e.User)
	default:
		text += fmt.Sprintf("user %s may not become root", e.User)
	}
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// ForwardingError says that no connection could be opened from the machine:
// its sshd forbids forwarding and no program there can relay.
type ForwardingError struct {
	Host string
	// Address is what was to be dialled, as seen from the machine.
	Address string
	Err     error
}

func (e *ForwardingError) Error() string {
	return fmt.Sprintf("%sreaching %s through the machine: %v", prefix(e.Host), e.Address, e.Err)
}

// Unwrap returns the cause.
func (e *ForwardingError) Unwrap() error { return e.Err }

// ConnectKind says at which step a connection failed.
type ConnectKind string

const (
	// DNS: the name has no address (permanent) or the resolver did not answer (not permanent).
	DNS ConnectKind = "dns"
	// Refused: nothing listens on the port.
	Refused ConnectKind = "refused"
	// Filtered: no answer at all, or a router says unreachable; most often a firewall or a machine still booting.
	Filtered ConnectKind = "filtered"
	// Banner: something answers that does not greet as SSH in time.
	Banner ConnectKind = "banner"
	// Reset: SSH answered and dropped the connection before the login ended (MaxStartups, fail2ban, sshd starting).
	Reset ConnectKind = "reset"
	// Handshake: no algorithm in common, or a broken key exchange.
	Handshake ConnectKind = "handshake"
	// HostKey: the host key is not the known one, or unknown under strict checking.
	HostKey ConnectKind = "hostkey"
	// Auth: no key was accepted. Trace names each key and its answer.
	Auth ConnectKind = "auth"
	// NoShell: the login worked and the account runs no commands (nologin, forced command, "log in as ubuntu").
	NoShell ConnectKind = "shell"
	// Jump: a hop on the way failed; Err is the hop's *ConnectError.
	Jump ConnectKind = "jump"
	// Config: the target, ssh_config or a named key file is unusable; nothing was dialled.
	Config ConnectKind = "config"
)

// Attempt is one thing tried while connecting and the answer it got.
type Attempt struct {
	// What names the thing: "dial 203.0.113.10:22", "key ~/.ssh/id_ed25519 SHA256:...".
	What string
	// Answer is the result: "accepted", "not accepted", "not offered: server closed first", an error text.
	Answer string
}

// ConnectError says that a machine was not reached. Nothing was sent to it.
type ConnectError struct {
	// Host is the machine as the user named it.
	Host string
	// Address is where the connection went (user@host:port), once known.
	Address string
	Kind    ConnectKind
	// Detail is one sentence for people, in addition to Err; may be empty.
	Detail string
	// Hint is the one thing most likely to help; may be empty. It is not part of Error().
	Hint string
	// Trace is what was tried, in order.
	Trace []Attempt
	// Tries is how often connecting was tried.
	Tries int
	Err   error
}

func (e *ConnectError) Error() string {
	text := prefix(e.Host) + "connecting"
	if e.Address != "" && e.Address != e.Host {
		text += " to " + e.Address
	}
	if e.Kind != Jump || e.Detail == "" { // the detail of this kind begins with the jump host
		text += ": " + string(e.Kind)
	}
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	if e.Err != nil && e.Err.Error() != e.Detail {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *ConnectError) Unwrap() error { return e.Err }

// Permanent reports whether trying again cannot help. A machine that is
// booting refuses, is filtered, resets or answers late: those can heal.
func (e *ConnectError) Permanent() bool {
	switch e.Kind {
	case Refused, Filtered, Banner, Reset:
		return false
	case DNS:
		var dns *net.DNSError
		return !errors.As(e.Err, &dns) || dns.IsNotFound
	case Jump:
		var hop *ConnectError
		return errors.As(e.Err, &hop) && hop.Permanent()
	default:
		return true
	}
}

func prefix(host string) string {
	if host == "" {
		return ""
	}
	return host + ": "
}

func lastLines(b []byte, n int) string {
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, "\n")
}
