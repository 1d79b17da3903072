package machine

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Tree reads a directory as files to be laid over a machine's root.
func Tree(dir string) (map[string]File, error) {
	files := map[string]File{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		target := "/" + filepath.ToSlash(rel)
		if d.Type()&fs.ModeSymlink != 0 {
			link, err := os.Readlink(path)
			files[target] = File{Link: link}
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		files[target] = File{Content: content, Mode: info.Mode().Perm()}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading machine files: %w", err)
	}
	return files, nil
}
