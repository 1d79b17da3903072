package provision

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

//go:embed modules
var modules embed.FS

// Modules are the names of the root modules that WriteModule knows: aws and
// google, which were checked for form only, and local, which makes machines by
// commands of the user's own.
func Modules() []string {
	entries, err := fs.ReadDir(modules, "modules")
	if err != nil {
		return nil // it is part of the program
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// WriteModule makes the directory dir with the root module of that name. It
// never writes into a directory that is there: the error is fs.ErrExist.
func WriteModule(name, dir string) error {
	files, err := fs.ReadDir(modules, path.Join("modules", name))
	if err != nil {
		return fmt.Errorf("there is no module %q", name)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return fmt.Errorf("writing the module: %w", err)
	}
	for _, f := range files {
		data, err := modules.ReadFile(path.Join("modules", name, f.Name()))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, f.Name()), data, 0o644)
		}
		if err != nil {
			return fmt.Errorf("writing the module: %w", err)
		}
	}
	return nil
}
