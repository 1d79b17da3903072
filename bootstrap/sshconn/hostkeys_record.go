package sshconn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"

	"github.com/sethvargo/go-retry"
)

const (
	// lockWait bounds how long another process may hold the file's lock.
	lockWait = 5 * time.Second
	// lockStale is the age at which a lock was left behind by a killed process.
	lockStale = 3 * time.Second
)

// recordKey adds a key to a known_hosts file: once, one writer at a time, the
// whole file replaced at once, readable by its owner alone.
func recordKey(file, name string, key ssh.PublicKey) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	unlock, err := lockFile(file + ".lock")
	if err != nil {
		return err
	}
	defer unlock()
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	line := []byte(knownhosts.Line([]string{name}, key))
	for old := range bytes.Lines(text) {
		if bytes.Equal(bytes.TrimSpace(old), line) {
			return nil
		}
	}
	if len(text) > 0 && !bytes.HasSuffix(text, []byte("\n")) {
		text = append(text, '\n')
	}
	text = append(append(text, line...), '\n')
	return replaceFile(file, text)
}

// replaceFile writes beside the file and renames.
func replaceFile(file string, text []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(file), ".known_hosts-*") // made with mode 0600
	if err != nil {
		return err
	}
	_, err = tmp.Write(text)
	if err == nil {
		err = tmp.Sync()
	}
	err = errors.Join(err, tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return nil
}

// lockFile makes the lock file or waits for its owner to drop it.
func lockFile(path string) (unlock func(), err error) {
	backoff := retry.WithMaxDuration(lockWait, retry.NewConstant(20*time.Millisecond))
	err = retry.Do(context.Background(), backoff, func(context.Context) error {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		switch {
		case err == nil:
			return f.Close() // its existence is the lock
		case !errors.Is(err, os.ErrExist):
			return err
		}
		if info, statErr := os.Stat(path); statErr == nil && time.Since(info.ModTime()) > lockStale {
			_ = os.Remove(path)
		}
		return retry.RetryableError(fmt.Errorf("%s is held by another process", path))
	})
	if err != nil {
		return nil, err
	}
	return func() { _ = os.Remove(path) }, nil
}
