package recipe

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
)

// key hashes the name, the salt, the Go version, the architecture and the
// content of all inputs. Where an input lies does not matter, so that a cache
// survives a move of the checkout; its base name and the names below it do.
func (c Cache) key(r Recipe) (string, error) {
	if !regexp.MustCompile(`^[A-Za-z0-9._-]+$`).MatchString(r.Name) {
		return "", fmt.Errorf("recipe name %q is not a plain file name", r.Name)
	}
	h := sha256.New()
	for _, s := range []string{r.Name, r.Salt, runtime.Version(), runtime.GOARCH} {
		fmt.Fprintf(h, "%d:%s\n", len(s), s)
	}
	for _, in := range r.Inputs {
		if err := hashInput(h, in); err != nil {
			return "", err
		}
	}
	return r.Name + "-" + hex.EncodeToString(h.Sum(nil))[:20], nil
}

func hashInput(h hash.Hash, root string) error {
	base := filepath.Base(root)
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(filepath.Join(base, rel))
		switch {
		case d.IsDir():
			return nil
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(h, "link %q %q\n", name, target)
			return nil
		case d.Type().IsRegular():
			return hashFile(h, path, name)
		default:
			return fmt.Errorf("input %s is neither a file, a link nor a directory", path)
		}
	})
}

func hashFile(h hash.Hash, path, name string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	// Only the executable bit survives a checkout; the rest is the umask's.
	fmt.Fprintf(h, "file %q %t %d\n", name, info.Mode()&0o100 != 0, info.Size())
	_, err = io.Copy(h, f)
	return err
}
