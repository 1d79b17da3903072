package sshconn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/crypto/ssh"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
)

// classify says at which step a login failed.
func (l *login) classify(err, timedOut error, w *wire, offer *keyOffer) *remote.ConnectError {
	greeting := w.heard()
	var noCommon *ssh.AlgorithmNegotiationError
	switch {
	case l.policy.problem != nil:
		e := l.failed(remote.HostKey, "", l.policy.problem)
		e.Hint = l.policy.hint
		return e
	case errors.Is(timedOut, context.Canceled):
		return l.failed(remote.Reset, "given up", timedOut)
	case len(greeting) == 0 && timedOut != nil:
		return l.failed(remote.Banner, "the port is open and does not greet as SSH", timedOut)
	case len(greeting) == 0:
		return l.failed(remote.Reset, "the connection was closed before the greeting", err)
	case !bytes.Contains(greeting, []byte("SSH-")):
		return l.foreignGreeting(greeting, err)
	case errors.As(err, &noCommon):
		return l.noCommon(noCommon)
	case !l.policy.passed && (timedOut != nil || dropped(err)):
		return l.failed(remote.Reset, "the connection ended during the key exchange", firstOf(timedOut, err))
	case !l.policy.passed:
		return l.failed(remote.Handshake, "", err)
	}
	return l.authFailed(err, timedOut, offer)
}

// foreignGreeting: sshd itself writes a plain line when it is too busy
// (MaxStartups) or punishes an address (PerSourcePenalties); both pass.
func (l *login) foreignGreeting(greeting []byte, err error) *remote.ConnectError {
	line, _, _ := strings.Cut(strings.TrimSpace(string(greeting)), "\n")
	if strings.Contains(line, "MaxStartups") || strings.HasPrefix(line, "Not allowed at this time") {
		return l.failed(remote.Reset, fmt.Sprintf("sshd is too busy: %q", line), err)
	}
	return l.failed(remote.Banner, fmt.Sprintf("what answers is not SSH: %q", line), err)
}

func (l *login) noCommon(e *ssh.AlgorithmNegotiationError) *remote.ConnectError {
	if !strings.Contains(e.What, "host key") {
		return l.failed(remote.Handshake, "", e)
	}
	return l.failed(remote.HostKey, fmt.Sprintf("usable here are %s, the server offers %s",
		strings.Join(e.SupportedAlgorithms, ", "), strings.Join(e.RequestedAlgorithms, ", ")), e)
}

// authFailed: a key that was accepted and then a dropped line is what a
// machine does while it boots (pam_nologin); that heals. The rest does not.
func (l *login) authFailed(err, timedOut error, offer *keyOffer) *remote.ConnectError {
	banner := l.bannerText()
	said := ""
	if banner != "" {
		said = fmt.Sprintf("; it said: %q", banner)
	}
	if offer.count(signed) > 0 && (timedOut != nil || dropped(err)) {
		return l.failed(remote.Reset, "a key was accepted and then the connection ended, as while booting"+said, firstOf(timedOut, err))
	}
	n := offer.count(offered)
	detail := fmt.Sprintf("user %s: none of %d keys was accepted", l.s.user, n)
	hint := "gpuctl ssh check shows each key and its answer; is the user name right?"
	switch {
	case len(offer.keys) == 0:
		detail = fmt.Sprintf("user %s: there was no key to offer", l.s.user)
		hint = "name a key with identityFile, or load one with ssh-add"
	case offer.count(signed) > 0:
		detail = fmt.Sprintf("user %s: a key was accepted and the login refused all the same", l.s.user)
		hint = "the account may be locked or want a second factor"
	case n < len(offer.keys):
		detail = fmt.Sprintf("user %s: the server ended the login after %d of %d keys", l.s.user, n, len(offer.keys))
		hint = "name the right key with identityFile, or set IdentitiesOnly yes in ssh_config"
	}
	e := l.failed(remote.Auth, detail+unusable(offer)+said, firstOf(timedOut, err))
	e.Hint = hint
	return e
}

// unusable names the key files and agents that were left out.
func unusable(offer *keyOffer) string {
	var b strings.Builder
	for _, a := range offer.notes {
		b.WriteString("; " + a.What + " " + a.Answer)
	}
	return b.String()
}

// dialFailed classifies an error of the operating system's connect.
func (l *login) dialFailed(err error) *remote.ConnectError {
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns):
		return l.failed(remote.DNS, "", err)
	case refused(err):
		return l.failed(remote.Refused, "", err)
	case dropped(err):
		return l.failed(remote.Reset, "", err)
	}
	return l.failed(remote.Filtered, "", err)
}

func refused(err error) bool {
	const wsaConnRefused = syscall.Errno(10061)
	var errno syscall.Errno
	return errors.Is(err, syscall.ECONNREFUSED) || runtime.GOOS == "windows" && errors.As(err, &errno) && errno == wsaConnRefused
}

// dropped reports an end of the connection that the peer or the network made.
func dropped(err error) bool {
	return slices.ContainsFunc([]error{syscall.ECONNRESET, syscall.EPIPE, net.ErrClosed, os.ErrClosed}, func(e error) bool { return errors.Is(err, e) }) ||
		strings.HasSuffix(err.Error(), "EOF") || strings.Contains(err.Error(), "ssh: disconnect")
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
