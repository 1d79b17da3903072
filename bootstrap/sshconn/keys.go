package sshconn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
)

// keyFile is what a private key file holds, or why it cannot be used.
type keyFile struct {
	public ssh.PublicKey // known also for most locked keys
	signer ssh.Signer    // nil where err says why
	err    error
	warn   string
	asked  bool // the passphrase was asked for
}

// errLocked says that a key file has a passphrase that was not given.
var errLocked = errors.New("locked: load it with ssh-add, or give its passphrase")

// keyFiles reads each key file once for all machines.
type keyFiles struct {
	passphrase func(ctx context.Context, file string) ([]byte, error)

	mu    sync.Mutex
	files map[string]*keyFile
}

// read returns a key file. unlock allows to ask for a passphrase. The lock is
// held while the user answers: the same question is asked once.
func (k *keyFiles) read(ctx context.Context, path string, unlock bool) *keyFile {
	k.mu.Lock()
	defer k.mu.Unlock()
	f, ok := k.files[path]
	if !ok {
		f = readKeyFile(path)
		k.files[path] = f
	}
	if !unlock || f.asked || k.passphrase == nil || !errors.Is(f.err, errLocked) {
		return f
	}
	unlocked := k.unlock(ctx, path, f)
	unlocked.asked = true
	k.files[path] = unlocked
	return unlocked
}

func (k *keyFiles) unlock(ctx context.Context, path string, f *keyFile) *keyFile {
	phrase, err := k.passphrase(ctx, path)
	if err != nil {
		return &keyFile{public: f.public, err: fmt.Errorf("passphrase: %w", err), warn: f.warn}
	}
	if len(phrase) == 0 {
		return f
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return &keyFile{public: f.public, err: err, warn: f.warn}
	}
	signer, err := ssh.ParsePrivateKeyWithPassphrase(data, phrase)
	if err != nil {
		return &keyFile{public: f.public, err: fmt.Errorf("the passphrase does not open it: %w", err), warn: f.warn}
	}
	return &keyFile{public: signer.PublicKey(), signer: signer, warn: f.warn}
}

// readKeyFile reads a private key, a public key ("the agent holds the other
// half") or, where the private file is missing, the public file beside it.
func readKeyFile(path string) *keyFile {
	data, err := os.ReadFile(path)
	if err != nil {
		f := &keyFile{err: withoutPath(err)}
		if pub, pubErr := readPublic(path + ".pub"); pubErr == nil {
			f.public = pub
			f.err = errors.New("only the public half is there and the agent does not hold the key")
		}
		return f
	}
	f := &keyFile{warn: modeWarning(path)}
	signer, err := ssh.ParsePrivateKey(data)
	var locked *ssh.PassphraseMissingError
	switch {
	case err == nil:
		f.signer, f.public = signer, signer.PublicKey()
		return f
	case errors.As(err, &locked):
		f.err, f.public = errLocked, locked.PublicKey
		if f.public == nil {
			f.public, _ = readPublic(path + ".pub") // old PEM formats hide the public half
		}
		return f
	}
	if pub, _, _, _, pubErr := ssh.ParseAuthorizedKey(data); pubErr == nil {
		f.public, f.warn = pub, ""
		if private := strings.TrimSuffix(path, ".pub"); private != path {
			if p := readKeyFile(private); p.signer != nil || errors.Is(p.err, errLocked) {
				return p
			}
		}
		f.err = errors.New("this is the public half: give the private file, or load it in the agent")
		return f
	}
	f.err = damage(data, err)
	return f
}

func readPublic(path string) (ssh.PublicKey, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pub, _, _, _, err := ssh.ParseAuthorizedKey(data)
	return pub, err
}

// damage says what is wrong with a key file that does not parse.
func damage(data []byte, err error) error {
	text := string(data)
	trimmed := strings.TrimSpace(text)
	switch {
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		return errors.New("begins with a byte order mark: save it without one")
	case strings.HasPrefix(trimmed, "PuTTY-User-Key-File"):
		return errors.New("is a PuTTY key: export it in OpenSSH format with puttygen")
	case !strings.Contains(text, "-----BEGIN"):
		return errors.New("is no private key")
	case strings.Contains(text, `\n`) && strings.Count(trimmed, "\n") < 2:
		return errors.New("contains the two characters backslash and n instead of line breaks")
	case indented(text):
		return errors.New("is indented: remove the blanks before each line")
	case !strings.Contains(text, "-----END"):
		return errors.New("is cut off: its END line is missing")
	}
	return fmt.Errorf("is damaged: %w", err)
}

func indented(text string) bool {
	for line := range strings.Lines(text) {
		if strings.Contains(line, "-----BEGIN") {
			return strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t")
		}
	}
	return false
}

// modeWarning is what ssh would refuse a private key for.
func modeWarning(path string) string {
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS == "windows" || info.Mode().Perm()&0o077 == 0 {
		return ""
	}
	return fmt.Sprintf("its mode is %04o: others may read it, ssh would refuse it (chmod 600)", info.Mode().Perm())
}

// withoutPath drops the path from a file error; the message names it already.
func withoutPath(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
