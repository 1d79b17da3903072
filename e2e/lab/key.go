package lab

import (
	"context"
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
)

// Key is the path of the private key that opens root, ubuntu and ops of every
// machine of the lab. The public one is beside it, with .pub at the end.
func (l *Lab) Key() string { return filepath.Join(l.Dir, "id_ed25519") }

// ensureKey makes a key pair if there is none and returns the public line.
func ensureKey(path string) ([]byte, error) {
	if line, err := os.ReadFile(path + ".pub"); err == nil {
		return line, nil
	}
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, fmt.Errorf("making the lab's key: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(private, "gpuctl-lab")
	if err != nil {
		return nil, fmt.Errorf("making the lab's key: %w", err)
	}
	sshPublic, err := ssh.NewPublicKey(public)
	if err != nil {
		return nil, fmt.Errorf("making the lab's key: %w", err)
	}
	line := ssh.MarshalAuthorizedKey(sshPublic)
	if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
		return nil, fmt.Errorf("making the lab's key: %w", err)
	}
	if err := os.WriteFile(path+".pub", line, 0o644); err != nil {
		return nil, fmt.Errorf("making the lab's key: %w", err)
	}
	return line, nil
}

// lock keeps other processes from changing the same lab.
func (l *Lab) lock(ctx context.Context) (unlock func(), err error) {
	f, err := os.OpenFile(l.Dir+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("locking lab %s: %w", l.ID, err)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			f.Close()
			return nil, fmt.Errorf("locking lab %s: %w", l.ID, err)
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("locking lab %s, which another process changes: %w", l.ID, ctx.Err())
		case <-tick.C:
		}
	}
}
