package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/bootstrap/sshconn"
	"github.com/gpuctl/gpuctl/internal/config"
)

// asker fetches secrets where the file says they are and asks the user what
// connecting needs to know, one question at a time.
type asker struct {
	app    *app
	secret func(string)
	ref    *config.Secret
	state  *asked
	// knownHosts is where keys of machines seen for the first time are pinned.
	knownHosts string
}

// asked is shared by all copies of an asker.
type asked struct {
	mu       sync.Mutex
	password *string
	phrases  map[string]string
}

func (s *session) asker(secret func(string)) asker {
	return asker{s.app, secret, s.config.Spec.SSH.SudoPassword, &asked{phrases: map[string]string{}}, s.state.KnownHosts()}
}

// sudoPassword is asked for only when sudo on a machine wants a password; empty
// means that none is configured. A machine seen for the first time gets it after
// a confirmation: whoever answers there would have it.
func (a asker) sudoPassword(ctx context.Context, machine sshconn.Info) (string, error) {
	if a.ref == nil {
		return "", nil
	}
	a.state.mu.Lock()
	defer a.state.mu.Unlock()
	if machine.FirstSeen && !a.app.flags.acceptNewHostKeys {
		if err := a.trust(ctx, machine); err != nil {
			return "", errors.Join(err, a.unpin(machine.Fingerprint))
		}
	}
	if a.state.password == nil {
		password, err := a.fetch()
		if err != nil {
			return "", err
		}
		a.secret(password)
		a.state.password = &password
	}
	return *a.state.password, nil
}

// unpin forgets the key of a machine that was not trusted: it is asked about again.
func (a asker) unpin(fingerprint string) error {
	if a.knownHosts == "" {
		return nil
	}
	return sshconn.Unpin(a.knownHosts, fingerprint)
}

func (a asker) trust(ctx context.Context, machine sshconn.Info) error {
	if !a.app.terminal.in {
		return untrusted(machine, fmt.Sprintf("it is seen for the first time (host key %s): pin its hostKey in gpuctl.yaml, or agree with --accept-new-host-keys",
			machine.Fingerprint))
	}
	if _, err := fmt.Fprintf(a.app.err, "%s is seen for the first time, its host key is %s %s.\nSend it the sudo password? [y/N] ",
		machine.Host, machine.KeyType, machine.Fingerprint); err != nil {
		return err
	}
	answer, err := readLine(ctx, bufio.NewReader(a.app.in))
	if err != nil {
		return err
	}
	if !agreed(answer) {
		return untrusted(machine, "you did not trust it")
	}
	return nil
}

// untrusted says that a machine did not get the password, and so no root rights came about.
func untrusted(machine sshconn.Info, why string) error {
	return &remote.SudoError{Host: machine.Host, User: machine.User, Name: "sudo", Kind: remote.SudoPasswordNeeded, Detail: why}
}

func (a asker) fetch() (string, error) {
	if a.ref.Prompt && a.app.terminal.in {
		return a.prompt("sudo password", "the sudo password")
	}
	password, err := a.ref.Read()
	if err != nil {
		return "", usagef("spec.ssh.sudoPassword: %w", err)
	}
	return password, nil
}

// read fetches a secret that stands at a field of gpuctl.yaml.
func (a asker) read(s config.Secret, field string) (string, error) {
	if !s.Prompt || !a.app.terminal.in {
		return s.Read()
	}
	a.state.mu.Lock()
	defer a.state.mu.Unlock()
	return a.prompt(field, field)
}

// prompt asks on the terminal; what names the secret in errors.
func (a asker) prompt(question, what string) (string, error) {
	secret, err := a.app.readPassword(question + ": ")
	if err != nil {
		return "", fmt.Errorf("asking for %s: %w", what, err)
	}
	if secret == "" {
		return "", fmt.Errorf("asking for %s: none was given", what)
	}
	return secret, nil
}

// passphrase opens a locked key file; without a terminal it stays locked.
func (a asker) passphrase(_ context.Context, file string) ([]byte, error) {
	a.state.mu.Lock()
	defer a.state.mu.Unlock()
	phrase, known := a.state.phrases[file]
	if !known && a.app.terminal.in {
		var err error
		if phrase, err = a.app.readPassword("passphrase of " + file + ": "); err != nil {
			return nil, fmt.Errorf("asking for the passphrase of %s: %w", file, err)
		}
		a.secret(phrase)
		a.state.phrases[file] = phrase
	}
	return []byte(phrase), nil
}

func agreed(answer string) bool {
	a := strings.ToLower(strings.TrimSpace(answer))
	return a == "y" || a == "yes"
}
