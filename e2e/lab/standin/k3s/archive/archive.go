// Package archive appends an archive of programs to an executable, and finds
// and unpacks it again: that makes one self-extracting file.
//
// The file is: executable, archive (tar, zstd), trailer. The trailer is 64 hex
// digits of the archive's SHA-256, its length as 16 hex digits, and a mark.
package archive

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/klauspost/compress/zstd"
)

const (
	mark        = "gpuctl-lab-k3s-1"
	trailerSize = sha256.Size*2 + 16 + len(mark)
)

// Append writes to out the executable followed by an archive of the regular
// files in dir.
func Append(out io.Writer, executable io.Reader, dir string) error {
	if _, err := io.Copy(out, executable); err != nil {
		return err
	}
	hash, size := sha256.New(), &counter{}
	z, err := zstd.NewWriter(io.MultiWriter(out, hash, size), zstd.WithEncoderLevel(zstd.SpeedDefault))
	if err != nil {
		return err
	}
	if err := write(tar.NewWriter(z), dir); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s%016x%s", hex.EncodeToString(hash.Sum(nil)), size.n, mark)
	return err
}

type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

func write(t *tar.Writer, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return err
		}
		if err := t.WriteHeader(&tar.Header{Name: e.Name(), Mode: 0o755, Size: info.Size(), Typeflag: tar.TypeReg}); err != nil {
			return err
		}
		f, err := os.Open(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		_, err = io.Copy(t, f)
		f.Close()
		if err != nil {
			return err
		}
	}
	return t.Close()
}

// Archive is an archive found at the end of an executable.
type Archive struct {
	Hash string // SHA-256, 64 hex digits
	file *os.File
	at   int64
	size int64
}

// Find opens the archive at the end of the file at path.
func Find(path string) (*Archive, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	trailer := make([]byte, trailerSize)
	if _, err := f.ReadAt(trailer, info.Size()-int64(trailerSize)); err != nil {
		return nil, err
	}
	if string(trailer[80:]) != mark {
		return nil, errors.New("the executable carries no archive: it was cut off")
	}
	size, err := strconv.ParseInt(string(trailer[64:80]), 16, 64)
	if err != nil {
		return nil, err
	}
	return &Archive{Hash: string(trailer[:64]), file: f, at: info.Size() - int64(trailerSize) - size, size: size}, nil
}

// Close closes the executable.
func (a *Archive) Close() error { return a.file.Close() }

// Unpack writes the archive's files to dir and checks its hash.
func (a *Archive) Unpack(dir string) error {
	hash := sha256.New()
	in := io.TeeReader(io.NewSectionReader(a.file, a.at, a.size), hash)
	z, err := zstd.NewReader(in)
	if err != nil {
		return err
	}
	defer z.Close()
	for t := tar.NewReader(z); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := extract(t, filepath.Join(dir, filepath.Base(h.Name))); err != nil {
			return err
		}
	}
	if _, err := io.Copy(io.Discard, z); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		return err
	}
	if have := hex.EncodeToString(hash.Sum(nil)); have != a.Hash {
		return fmt.Errorf("archive is damaged: hash is %s, want %s", have, a.Hash)
	}
	return nil
}

func extract(in io.Reader, path string) error {
	out, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}
