// Package files writes files with the modes that k3s gives them.
package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Write writes data to path by rename, and makes its directory (0700) if it is
// not there.
func Write(path string, data []byte, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	tmp := path + ".tmp"
	if err := os.WriteFile(tmp, data, mode); err != nil {
		return err
	}
	if err := os.Chmod(tmp, mode); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

// Link makes path a symbolic link to target, whatever it was before.
func Link(target, path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink(target, path)
}

// Exists tells whether path is there.
func Exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Dir makes a directory with the mode, leaving the mode of one that is there.
func Dir(path string, mode os.FileMode) error {
	if Exists(path) {
		return nil
	}
	if err := os.MkdirAll(path, mode); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}
