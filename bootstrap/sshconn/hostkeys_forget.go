package sshconn

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1" // known_hosts hashes names with it (ssh-keygen -H)
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
	xknownhosts "golang.org/x/crypto/ssh/knownhosts"
)

// KeyChangedError says that a machine shows a host key other than the known
// one. Only a person can tell a rebuilt machine from an impostor.
type KeyChangedError struct {
	// Name is what known_hosts lists: "203.0.113.7" or "[203.0.113.7]:2222".
	Name string
	// Known are the keys on file, Offered the one the machine showed: type and SHA256 fingerprint.
	Known   []string
	Offered string

	key  ssh.PublicKey
	text string
}

func (e *KeyChangedError) Error() string { return e.text }

func (p *keyPolicy) changed(key ssh.PublicKey, known []xknownhosts.KnownKey, text string) error {
	e := &KeyChangedError{Name: xknownhosts.Normalize(p.name), Offered: describe(key), key: key, text: text}
	for _, k := range known {
		e.Known = append(e.Known, fmt.Sprintf("%s (%s:%d)", describe(k.Key), k.Filename, k.Line))
	}
	return e
}

func describe(key ssh.PublicKey) string { return key.Type() + " " + ssh.FingerprintSHA256(key) }

// ReplaceKey forgets the keys that a known_hosts file has for the machine and
// pins the one that it showed, that very key and no later one. Keys of other
// machines stay, and so do patterns, authorities and revocations. Whoever calls
// it has asked a person.
func ReplaceKey(file string, e *KeyChangedError) error {
	unlock, err := lockFile(file + ".lock")
	if err != nil {
		return fmt.Errorf("pinning the new host key of %s: %w", e.Name, err)
	}
	defer unlock()
	old, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("pinning the new host key of %s: %w", e.Name, err)
	}
	var out bytes.Buffer
	for line := range bytes.Lines(old) {
		if kept := withoutName(string(line), e.Name); kept != "" {
			out.WriteString(strings.TrimRight(kept, "\r\n") + "\n")
		}
	}
	out.WriteString(knownhosts.Line([]string{e.Name}, e.key) + "\n")
	if err := replaceFile(file, out.Bytes()); err != nil {
		return fmt.Errorf("pinning the new host key of %s: %w", e.Name, err)
	}
	return nil
}

// withoutName takes a name out of a line of known_hosts; "" if nothing is left of it.
func withoutName(line, name string) string {
	trimmed := strings.TrimSpace(line)
	if trimmed == "" || trimmed[0] == '#' || trimmed[0] == '@' {
		return line
	}
	hosts, key, ok := strings.Cut(trimmed, " ")
	if !ok {
		return line
	}
	names := strings.Split(hosts, ",")
	kept := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == name || hashes(n, name) })
	switch len(kept) {
	case len(names):
		return line
	case 0:
		return ""
	}
	return strings.Join(kept, ",") + " " + key
}

// hashes says whether "|1|salt|hash" stands for a name (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT).
func hashes(pattern, name string) bool {
	parts := strings.Split(pattern, "|")
	if len(parts) != 4 || parts[0] != "" || parts[1] != "1" {
		return false
	}
	salt, err := base64.StdEncoding.DecodeString(parts[2])
	if err != nil {
		return false
	}
	want, err := base64.StdEncoding.DecodeString(parts[3])
	if err != nil {
		return false
	}
	mac := hmac.New(sha1.New, salt)
	mac.Write([]byte(name))
	return subtle.ConstantTimeCompare(mac.Sum(nil), want) == 1
}
