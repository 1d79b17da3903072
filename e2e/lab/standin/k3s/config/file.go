// Package config reads the options of `k3s server` and `k3s agent` from the
// configuration file, its drop-ins, the command line and the environment, by
// the rules of k3s: pkg/configfilearg/{parser,defaultparser}.go.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v2"
)

// entry is one key of the merged file, with its values as they go to the
// command line.
type entry struct {
	key    string
	values []string
}

// FileArgs returns the merged content of the configuration file and its
// drop-ins as command line arguments (--key=value), keys in the order in which
// they were first seen. A missing file counts as empty, even if it was named.
func FileArgs(file string) ([]string, error) {
	if file == "" {
		return nil, nil
	}
	var merged []entry
	for _, path := range sources(file) {
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if merged, err = merge(merged, data); err != nil {
			return nil, err
		}
	}
	var args []string
	for _, e := range merged {
		for _, v := range e.values {
			args = append(args, prefix(e.key)+v)
		}
	}
	return args, nil
}

// sources is the main file followed by its drop-ins in name order.
func sources(file string) []string {
	paths := []string{file}
	drops, err := os.ReadDir(file + ".d")
	if err != nil {
		return paths
	}
	for _, d := range drops {
		name := strings.ToLower(d.Name())
		if !d.IsDir() && (strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")) {
			paths = append(paths, filepath.Join(file+".d", d.Name()))
		}
	}
	return paths
}

// merge adds one file. A key replaces what earlier files gave; a key that ends
// in + appends to it.
func merge(merged []entry, data []byte) ([]entry, error) {
	var doc yaml.MapSlice
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	for _, item := range doc {
		key, add := strings.CutSuffix(fmt.Sprint(item.Key), "+")
		values := stringsOf(item.Value)
		i := slices.IndexFunc(merged, func(e entry) bool { return e.key == key })
		switch {
		case i < 0:
			merged = append(merged, entry{key, values})
		case add:
			merged[i].values = append(slices.Clone(merged[i].values), values...)
		default:
			merged[i].values = values
		}
	}
	return merged, nil
}

// stringsOf turns a YAML value into flag values: a list gives several, null an
// empty one. Numbers come as YAML 1.1 reads them: an unquoted 0644 is 420.
func stringsOf(v any) []string {
	switch v := v.(type) {
	case nil:
		return []string{""}
	case []any:
		values := make([]string, 0, len(v))
		for _, item := range v {
			values = append(values, stringsOf(item)...)
		}
		return values
	default:
		return []string{fmt.Sprint(v)}
	}
}

func prefix(key string) string {
	if len(key) == 1 {
		return "-" + key + "="
	}
	return "--" + key + "="
}
