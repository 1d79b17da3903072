package bundle

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
)

// Names in the archive.
const (
	manifestName  = "manifest.json"
	signatureName = "manifest.json.sig"
	licensesName  = "LICENSES.txt"
	blobDir       = "blobs/sha256/"
)

// Bundle is one that is open for reading. It is safe for concurrent use.
type Bundle struct {
	Manifest
	// Path is the file.
	Path string

	file      *os.File
	manifest  []byte
	signature []byte
	at        map[string]section // by checksum
}

type section struct{ offset, size int64 }

// Open reads what is where in a bundle and refuses an archive that is not
// exactly what its manifest says, links and strange names included. Contents
// are checked by Verify, or by who uses them: each is named by its checksum.
// Errors wrap ErrBundle or are those of the file system.
func Open(file string) (*Bundle, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("opening the bundle: %w", err)
	}
	b := &Bundle{Path: file, file: f, at: map[string]section{}}
	if err := b.index(); err != nil {
		return nil, fmt.Errorf("opening the bundle %s: %w", file, errors.Join(err, f.Close()))
	}
	return b, nil
}

// Close closes the file.
func (b *Bundle) Close() error { return b.file.Close() }

func (b *Bundle) index() error {
	info, err := b.file.Stat()
	if err != nil {
		return err
	}
	r := tar.NewReader(b.file)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrBundle, err)
		}
		if err := b.entry(h, r, info.Size()); err != nil {
			return fmt.Errorf("%w: %q: %w", ErrBundle, h.Name, err)
		}
	}
	if b.manifest == nil {
		return fmt.Errorf("%w: it has no manifest", ErrBundle)
	}
	for _, f := range b.Files {
		if at, there := b.at[f.SHA256]; !there || at.size != f.Size {
			return fmt.Errorf("%w: it is not whole: %s %s is missing or cut short", ErrBundle, f.Kind, f.Name)
		}
	}
	if len(b.at) != len(b.Files) {
		return fmt.Errorf("%w: it holds more than its manifest says", ErrBundle)
	}
	for _, f := range b.Files {
		if f.Kind == Packages {
			if err := checkTree(io.NewSectionReader(b.file, b.at[f.SHA256].offset, f.Size)); err != nil {
				return fmt.Errorf("%w: %s %s: %w", ErrBundle, f.Kind, f.Name, err)
			}
		}
	}
	return nil
}

// entry takes one member of the archive in.
func (b *Bundle) entry(h *tar.Header, r io.Reader, end int64) error {
	if h.Typeflag != tar.TypeReg {
		return fmt.Errorf("is no plain file (type %q)", h.Typeflag)
	}
	if b.manifest == nil && h.Name != manifestName {
		return errors.New("stands before the manifest")
	}
	switch h.Name {
	case manifestName:
		if b.manifest != nil {
			return errors.New("is there twice")
		}
		data, err := io.ReadAll(io.LimitReader(r, maxManifest+1))
		if err != nil {
			return err
		}
		b.manifest = data
		b.Manifest, err = ParseManifest(data)
		return err
	case signatureName:
		data, err := io.ReadAll(io.LimitReader(r, 4096))
		b.signature = data
		return err
	case licensesName:
		return nil
	}
	sum, ok := strings.CutPrefix(h.Name, blobDir)
	if !ok || !checksum(sum) {
		return errors.New("is no name of this format")
	}
	if _, twice := b.at[sum]; twice {
		return errors.New("is there twice")
	}
	// archive/tar reads headers in whole blocks and nothing ahead: the body begins here.
	offset, err := b.file.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	if h.Size < 0 || offset+h.Size > end {
		return errors.New("is cut short")
	}
	b.at[sum] = section{offset, h.Size}
	return nil
}

// Reader reads a file of the bundle.
func (b *Bundle) Reader(f File) (*io.SectionReader, error) {
	at, ok := b.at[f.SHA256]
	if !ok {
		return nil, fmt.Errorf("%w: it has no %s %s", ErrBundle, f.Kind, f.Name)
	}
	return io.NewSectionReader(b.file, at.offset, at.size), nil
}

// Verify reads everything and holds it against the checksums. done is told how
// many bytes are read, of the whole's Size.
func (b *Bundle) Verify(ctx context.Context, done func(int64)) error {
	var total int64
	for _, f := range b.Files {
		r, err := b.Reader(f)
		if err != nil {
			return err
		}
		h := sha256.New()
		buf := make([]byte, 1<<20)
		for {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			n, err := r.Read(buf)
			h.Write(buf[:n])
			total += int64(n)
			done(total)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return fmt.Errorf("reading the bundle: %w", err)
			}
		}
		if got := hex.EncodeToString(h.Sum(nil)); got != f.SHA256 {
			return fmt.Errorf("%w: %s %s is damaged: its SHA-256 is %s, wanted %s", ErrBundle, f.Kind, f.Name, got, f.SHA256)
		}
	}
	return nil
}

// checkTree makes sure that a tar archive unpacks into its own directory and
// nowhere else: plain files and directories with relative, clean names.
func checkTree(r io.Reader) error {
	t := tar.NewReader(r)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(h.Name, "/")
		switch {
		case h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeDir:
			return fmt.Errorf("%q is neither a plain file nor a directory", h.Name)
		case name == "" || path.IsAbs(name) || path.Clean(name) != name || name == ".." || strings.HasPrefix(name, "../"):
			return fmt.Errorf("%q leads out of the archive", h.Name)
		case strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '\\' }):
			return fmt.Errorf("%q has characters that no name of a package has", h.Name)
		case h.Mode&0o7000 != 0:
			return fmt.Errorf("%q has mode %o", h.Name, h.Mode)
		}
	}
}
