package main

import (
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/bootstrap/sshconn"
	"github.com/gpuctl/gpuctl/internal/inventory"
	"github.com/gpuctl/gpuctl/internal/ui"
)

// sshViews is the result of ssh check.
type sshViews struct {
	Machines []sshView `json:"machines"`
}

// sshView is one machine.
type sshView struct {
	Name     string        `json:"name"`
	OK       bool          `json:"ok"`
	Resolved *resolvedView `json:"resolved,omitempty"`
	Hops     []hopView     `json:"hops,omitempty"`
	Tried    []attemptView `json:"tried"`
	HostKey  *hostKeyView  `json:"hostKey,omitempty"`
	// Sudo is root, free, password (asked for and given), or the kind of refusal.
	Sudo string `json:"sudo,omitempty"`
	// Forwarding is direct, relayed or none.
	Forwarding string       `json:"forwarding,omitempty"`
	Failure    *failureView `json:"failure,omitempty"`
}

type resolvedView struct {
	HostName      string   `json:"hostName"`
	User          string   `json:"user"`
	Port          int      `json:"port"`
	Jump          []string `json:"jump,omitempty"`
	ProxyCommand  string   `json:"proxyCommand,omitempty"`
	IdentityFiles []string `json:"identityFiles,omitempty"`
}

type hopView struct {
	Host  string        `json:"host"`
	Tried []attemptView `json:"tried"`
	Error string        `json:"error,omitempty"`
}

type hostKeyView struct {
	Type        string `json:"type"`
	Fingerprint string `json:"fingerprint"`
	FirstSeen   bool   `json:"firstSeen"`
}

type failureView struct {
	// Kind is the step: dns, refused, filtered, banner, reset, handshake, hostkey, auth, shell, jump, config, sudo, forwarding.
	Kind  string `json:"kind"`
	Error string `json:"error"`
	Hint  string `json:"hint,omitempty"`
}

func viewOf(m inventory.Machine, c sshconn.Checkup) sshView {
	v := sshView{Name: m.Name, OK: c.Err == nil, Tried: attemptViews(c.Trace), Sudo: c.Sudo, Forwarding: c.Forwarding}
	if r := c.Resolved; r != nil {
		v.Resolved = &resolvedView{r.HostName, r.User, r.Port, r.Jump, r.ProxyCommand, r.IdentityFiles}
	}
	for _, h := range c.Hops {
		hop := hopView{Host: h.Host, Tried: attemptViews(h.Trace)}
		if h.Err != nil {
			hop.Error = h.Err.Error()
		}
		v.Hops = append(v.Hops, hop)
	}
	if c.Login != nil {
		v.HostKey = &hostKeyView{c.Login.KeyType, c.Login.Fingerprint, c.Login.FirstSeen}
	}
	if c.Err != nil {
		kind, hint := whatHelps(c.Err)
		v.Failure = &failureView{kind, c.Err.Error(), hint}
	}
	var sudo *remote.SudoError
	if errors.As(c.Err, &sudo) {
		v.Sudo = string(sudo.Kind)
	}
	return v
}

// whatHelps names the step at which a machine failed and the one thing most likely to help.
func whatHelps(err error) (kind, hint string) {
	var connect *remote.ConnectError
	var sudo *remote.SudoError
	var forwarding *remote.ForwardingError
	switch {
	case errors.As(err, &sudo):
		return "sudo", sudoHint(sudo.Kind)
	case errors.As(err, &forwarding):
		return "forwarding", "set AllowTcpForwarding yes (or local) in sshd_config there, or install python3, perl, socat or nc"
	case !errors.As(err, &connect):
		return "unknown", ""
	}
	kind, hint = string(connect.Kind), connect.Hint
	var hop *remote.ConnectError
	if connect.Kind == remote.Jump && errors.As(connect.Err, &hop) {
		_, hint = whatHelps(hop)
	}
	if hint == "" {
		hint = connectHint(connect.Kind)
	}
	return kind, hint
}

func connectHint(kind remote.ConnectKind) string {
	switch kind {
	case remote.DNS:
		return "check the spelling, or use the address; a Host of ssh_config needs its HostName"
	case remote.Refused:
		return "nothing listens on that port: is the machine still booting, or sshd on another port?"
	case remote.Filtered:
		return "no answer came: is the machine running, and does the provider's firewall let this client in?"
	case remote.Banner:
		return "something other than sshd holds that port: is the port right?"
	case remote.Reset:
		return "the machine hung up: booting, too many logins at once, or this address is banned there (fail2ban)"
	case remote.Handshake:
		return "its sshd is too old or too strict for this client: see what it offers with ssh -vv"
	case remote.HostKey:
		return "compare the fingerprint with the one the provider shows, then pin it as hostKey in gpuctl.yaml"
	case remote.Auth:
		return "is the user name right (ubuntu, root, ec2-user), and was this key given to the provider?"
	case remote.NoShell:
		return "log in as the user that the machine's message names"
	case remote.Jump:
		return "allow forwarding on the jump host: AllowTcpForwarding local in its sshd_config"
	case remote.Config:
		return "see what OpenSSH makes of it with ssh -G"
	}
	return ""
}

func sudoHint(kind remote.SudoKind) string {
	switch kind {
	case remote.SudoPasswordNeeded:
		return "say where the password is with spec.ssh.sudoPassword, or allow sudo without one"
	case remote.SudoWrongPassword:
		return "correct the password that spec.ssh.sudoPassword names; it was tried once"
	case remote.SudoAbsent:
		return "log in as root, or install sudo there"
	}
	return "let the user run everything in sudoers, or log in as another one"
}

// sshText is a block of lines per machine.
func sshText(out io.Writer, views []sshView) error {
	w := &writer{w: out}
	for _, v := range views {
		w.gap()
		w.linef("%s", v.Name)
		if r := v.Resolved; r != nil {
			w.linef("  goes to     %s", ui.Clean(r.User+"@"+r.HostName+" port "+strconv.Itoa(r.Port)))
			if len(r.Jump) > 0 {
				w.linef("  through     %s", ui.Clean(strings.Join(r.Jump, ", then ")))
			}
		}
		for _, h := range v.Hops {
			triedText(w, h.Tried, "  "+h.Host+": ")
		}
		triedText(w, v.Tried, "  ")
		w.linef("  root        %s", sudoText(v))
		w.linef("  forwarding  %s", forwardingText(v.Forwarding))
		if v.Failure == nil {
			w.linef("  all is well")
			continue
		}
		w.linef("  failed at %s: %s", v.Failure.Kind, ui.Clean(v.Failure.Error))
		if v.Failure.Hint != "" {
			w.linef("  hint: %s", v.Failure.Hint)
		}
	}
	return w.err
}

func triedText(w *writer, tried []attemptView, indent string) {
	for _, t := range tried {
		w.linef("%s%s: %s", indent, ui.Clean(t.What), ui.Clean(t.Answer))
	}
}

func sudoText(v sshView) string {
	switch v.Sudo {
	case "":
		return "not asked"
	case "root":
		return "the user is root"
	case "free":
		return "sudo asks for no password"
	case "password":
		return "sudo took the password"
	}
	return "no: " + v.Sudo
}

func forwardingText(how string) string {
	switch how {
	case "direct":
		return "allowed: the Kubernetes API goes through this connection"
	case "relayed":
		return "forbidden by sshd: a program on the machine relays the Kubernetes API instead"
	case "none":
		return "forbidden by sshd, and nothing there can relay"
	}
	return "not asked"
}
