package remote

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"time"
)

//go:embed writefile.sh
var writeFileScript string

// File is a file to be written on a machine.
type File struct {
	// Path is absolute.
	Path string
	// Mode is the permission bits; 0 means 0644.
	Mode fs.FileMode
	// Owner is "user" or "user:group"; empty means whoever writes (root with Sudo).
	Owner string
	// DirMode is the mode of the parent directory if it must be made; 0 means 0755. Directories that exist keep theirs.
	DirMode fs.FileMode
	// Content is the whole file. Content or Reader, not both.
	Content []byte
	// Reader streams the file; SHA256 must then be given.
	Reader io.Reader
	// SHA256 is the checksum in hex; computed from Content where empty.
	SHA256 string
	// Size in bytes, used to bound the time a stream may take; 0 means unknown.
	Size int64
	// Sudo writes as root.
	Sudo bool
	// Secret keeps the content out of errors: nothing of the machine's output is shown.
	Secret bool
	// Timeout as in Cmd; 0 means one minute and a second for each 100 kB of Size.
	Timeout time.Duration
}

// WriteFile writes a file in one command: stream into a fresh private
// directory beside the target, checksum, owner, mode, rename. A reader of the
// path sees the old file or the new one, never a part. Errors are those of
// Runner, and a plain error where f itself is unusable.
func WriteFile(ctx context.Context, r Runner, f File) error {
	c, err := writeFileCmd(f)
	if err != nil {
		return fmt.Errorf("writing %s: %w", f.Path, err)
	}
	if _, err := r.Run(ctx, c); err != nil {
		if f.Secret {
			err = withoutOutput(err)
		}
		return fmt.Errorf("writing %s: %w", f.Path, err)
	}
	return nil
}

// writeFileCmd renders the command of WriteFile.
func writeFileCmd(f File) (Cmd, error) {
	if !path.IsAbs(f.Path) || path.Clean(f.Path) != f.Path || f.Path == "/" {
		return Cmd{}, errors.New("path is not absolute and clean")
	}
	if f.Content != nil && f.Reader != nil {
		return Cmd{}, errors.New("both content and reader given")
	}
	in, sum, size := f.Reader, f.SHA256, f.Size
	if in == nil {
		in, size = bytes.NewReader(f.Content), int64(len(f.Content))
		if sum == "" {
			h := sha256.Sum256(f.Content)
			sum = hex.EncodeToString(h[:])
		}
	}
	if b, err := hex.DecodeString(sum); err != nil || len(b) != sha256.Size {
		return Cmd{}, errors.New("sha256 is missing or not 64 hex digits")
	}
	mode, dirMode, timeout := f.Mode.Perm(), f.DirMode.Perm(), f.Timeout
	if mode == 0 {
		mode = 0o644
	}
	if dirMode == 0 {
		dirMode = 0o755
	}
	if timeout == 0 {
		timeout = time.Minute + time.Duration(size/100_000)*time.Second
	}
	return Cmd{
		Name:    "write " + f.Path,
		Script:  writeFileScript,
		Args:    []string{f.Path, octal(mode), f.Owner, sum, octal(dirMode)},
		Stdin:   in,
		Sudo:    f.Sudo,
		Timeout: timeout,
	}, nil
}

// exitNoFile is the exit code of readFileScript for a file that is not there.
const exitNoFile = 66

const readFileScript = `if [ ! -e "$1" ] && [ ! -L "$1" ]; then exit 66; fi
exec cat -- "$1"
`

// ReadFile returns the content of a file, at most 4 MiB. The error wraps
// fs.ErrNotExist where there is no such file.
func ReadFile(ctx context.Context, r Runner, file string, sudo bool) ([]byte, error) {
	res, err := r.Run(ctx, Cmd{
		Name:   "read " + file,
		Script: readFileScript,
		Args:   []string{file},
		Sudo:   sudo,
	})
	if ExitCode(err) == exitNoFile {
		return nil, fmt.Errorf("reading %s: %w", file, fs.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return res.Stdout, nil
}

func octal(m fs.FileMode) string { return "0" + strconv.FormatUint(uint64(m), 8) }

func withoutOutput(err error) error {
	var exit *ExitError
	if errors.As(err, &exit) {
		return &ExitError{Host: exit.Host, Name: exit.Name, Code: exit.Code, Signal: exit.Signal}
	}
	var cut *CutOffError
	if errors.As(err, &cut) {
		return &CutOffError{Host: cut.Host, Name: cut.Name, Err: cut.Err}
	}
	return err
}
