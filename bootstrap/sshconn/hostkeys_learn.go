package sshconn

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
)

// Learned says what became of one line that somebody trusted handed over.
type Learned string

const (
	// LearnedNew: the machine had no key on file.
	LearnedNew Learned = "new"
	// LearnedKnown: the key was on file.
	LearnedKnown Learned = "known"
	// LearnedConflict: another key of this type is on file, and stays.
	LearnedConflict Learned = "conflict"
	// LearnedReplaced: another key was on file, and is forgotten.
	LearnedReplaced Learned = "replaced"
)

// LearnKey pins the key of a line of known_hosts in a known_hosts file. A key
// that is on file already in another form is a conflict: nothing is changed
// unless replace says so. The error is that of a line that names no one host and
// key, or of the file.
func LearnKey(file, line string, replace bool) (Learned, error) {
	marker, hosts, key, _, rest, err := ssh.ParseKnownHosts([]byte(line))
	if err != nil || marker != "" || len(hosts) != 1 || len(bytes.TrimSpace(rest)) > 0 || strings.ContainsAny(hosts[0], "*?!|") {
		return "", fmt.Errorf("%q is no line of known_hosts with one host and one key", line)
	}
	unlock, err := lockFile(file + ".lock")
	if err != nil {
		return "", fmt.Errorf("pinning the host key of %s: %w", hosts[0], err)
	}
	defer unlock()
	old, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("pinning the host key of %s: %w", hosts[0], err)
	}
	out, learned := learn(old, hosts[0], key, replace)
	if learned == LearnedKnown || learned == LearnedConflict {
		return learned, nil
	}
	if err := replaceFile(file, out); err != nil {
		return "", fmt.Errorf("pinning the host key of %s: %w", hosts[0], err)
	}
	return learned, nil
}

// learn is the file with the key.
func learn(old []byte, name string, key ssh.PublicKey, replace bool) ([]byte, Learned) {
	learned := LearnedNew
	var out bytes.Buffer
	for line := range bytes.Lines(old) {
		kept := withoutName(string(line), name)
		if kept == string(line) {
			out.WriteString(strings.TrimRight(kept, "\r\n") + "\n")
			continue
		}
		_, _, have, _, _, err := ssh.ParseKnownHosts(line)
		switch {
		case err != nil || have.Type() != key.Type():
			out.WriteString(strings.TrimRight(string(line), "\r\n") + "\n") // another key of the same machine
			continue
		case slices.Equal(have.Marshal(), key.Marshal()):
			return old, LearnedKnown
		case !replace:
			return old, LearnedConflict
		}
		learned = LearnedReplaced
		if kept != "" {
			out.WriteString(strings.TrimRight(kept, "\r\n") + "\n")
		}
	}
	out.WriteString(knownhosts.Line([]string{name}, key) + "\n")
	return out.Bytes(), learned
}
