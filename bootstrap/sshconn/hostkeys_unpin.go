package sshconn

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/crypto/ssh"
)

// Unpin takes a host key out of a known_hosts file, for a machine that was seen
// for the first time and that the user then did not trust: otherwise it would
// count as known the next time.
func Unpin(file, fingerprint string) error {
	unlock, err := lockFile(file + ".lock")
	if err != nil {
		return fmt.Errorf("forgetting host key %s: %w", fingerprint, err)
	}
	defer unlock()
	old, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("forgetting host key %s: %w", fingerprint, err)
	}
	var out bytes.Buffer
	for line := range bytes.Lines(old) {
		if !holdsKey(string(line), fingerprint) {
			out.Write(line)
		}
	}
	if err := replaceFile(file, out.Bytes()); err != nil {
		return fmt.Errorf("forgetting host key %s: %w", fingerprint, err)
	}
	return nil
}

func holdsKey(line, fingerprint string) bool {
	if strings.HasPrefix(strings.TrimSpace(line), "@") {
		return false // authorities and revocations are not pins
	}
	_, _, key, _, _, err := ssh.ParseKnownHosts([]byte(line))
	return err == nil && ssh.FingerprintSHA256(key) == fingerprint
}
