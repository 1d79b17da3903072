package bundle

import (
	"archive/tar"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// Content is a file with its bytes: it is written as often as it is asked for, the same each time.
type Content struct {
	File
	WriteTo func(w io.Writer) error
}

// Write makes the bundle at file: nobody sees a part of it under that name.
// key signs the manifest; nil leaves it unsigned. written is told how many
// bytes are there.
func Write(file string, m Manifest, contents []Content, key ed25519.PrivateKey, written func(int64)) (err error) {
	m.APIVersion, m.Kind, m.Files = apiVersion, kindName, nil
	for _, c := range contents {
		m.Files = append(m.Files, c.File)
	}
	manifest, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the bundle: %w", err)
	}
	if _, err := ParseManifest(manifest); err != nil {
		return fmt.Errorf("writing the bundle: %w", err)
	}
	out, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*")
	if err != nil {
		return fmt.Errorf("writing the bundle: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(out.Name()) // it is not under its final name; the error says more
		}
	}()
	err = writeAll(out, m, manifest, contents, key, written)
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		return fmt.Errorf("writing the bundle: %w", err)
	}
	if err := os.Chmod(out.Name(), 0o644); err != nil { //nolint:gosec // it holds nothing that is not public
		return fmt.Errorf("writing the bundle: %w", err)
	}
	if err := os.Rename(out.Name(), file); err != nil {
		return fmt.Errorf("writing the bundle: %w", err)
	}
	return nil
}

func writeAll(out io.Writer, m Manifest, manifest []byte, contents []Content, key ed25519.PrivateKey, written func(int64)) error {
	t := tar.NewWriter(out)
	small := []struct {
		name string
		data []byte
	}{{manifestName, manifest}}
	if key != nil {
		small = append(small, struct {
			name string
			data []byte
		}{signatureName, ed25519.Sign(key, manifest)})
	}
	small = append(small, struct {
		name string
		data []byte
	}{licensesName, []byte(m.Licenses())})
	for _, s := range small {
		if err := t.WriteHeader(header(s.name, int64(len(s.data)))); err != nil {
			return err
		}
		if _, err := t.Write(s.data); err != nil {
			return err
		}
	}
	count := &counting{w: t, told: written}
	for _, c := range contents {
		if err := t.WriteHeader(header(blobDir+c.SHA256, c.Size)); err != nil {
			return err
		}
		if err := c.WriteTo(count); err != nil {
			return fmt.Errorf("%s %s: %w", c.Kind, c.Name, err)
		}
	}
	return t.Close()
}

func header(name string, size int64) *tar.Header {
	return &tar.Header{Name: name, Mode: 0o644, Size: size, Typeflag: tar.TypeReg, Format: tar.FormatPAX, ModTime: time.Unix(0, 0).UTC()}
}

type counting struct {
	w    io.Writer
	n    int64
	told func(int64)
}

func (c *counting) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	if c.told != nil {
		c.told(c.n)
	}
	return n, err
}
