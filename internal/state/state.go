// Package state is what this tool keeps on the user's computer about a cluster:
// the record of every run, the cluster's own known_hosts, its kubeconfig and the
// lock that lets one run at a time work on it. The machines are the truth; what
// lies here can be deleted at any time.
package state

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Dir is the state directory of one cluster.
type Dir struct {
	path string
}

// Open makes the cluster's state directory, mode 0700, if it is not there:
// $XDG_STATE_HOME/gpuctl/<cluster>, else ~/.local/state (Linux),
// ~/Library/Application Support (macOS) or %LocalAppData% (Windows).
func Open(cluster string) (Dir, error) {
	base, err := base()
	if err != nil {
		return Dir{}, fmt.Errorf("finding the state directory: %w", err)
	}
	return OpenAt(filepath.Join(base, "gpuctl", cluster))
}

// OpenAt makes path a state directory.
func OpenAt(path string) (Dir, error) {
	if err := os.MkdirAll(filepath.Join(path, "runs"), 0o700); err != nil {
		return Dir{}, fmt.Errorf("making the state directory: %w", err)
	}
	return Dir{path: path}, nil
}

func base() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return dir, nil
	}
	if runtime.GOOS == "windows" {
		if dir := os.Getenv("LocalAppData"); dir != "" {
			return dir, nil
		}
		return "", errors.New("%LocalAppData% is not set")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	if runtime.GOOS == "darwin" {
		return filepath.Join(home, "Library", "Application Support"), nil
	}
	return filepath.Join(home, ".local", "state"), nil
}

// Path is the directory itself.
func (d Dir) Path() string { return d.path }

// KnownHosts is where host keys of this cluster's machines are pinned.
func (d Dir) KnownHosts() string { return filepath.Join(d.path, "known_hosts") }

// Kubeconfig is where the cluster's kubeconfig is kept.
func (d Dir) Kubeconfig() string { return filepath.Join(d.path, "kubeconfig") }

// ID tells this cluster's state from that of others, also on other computers
// and of the same name. It is made once, at random, and is no secret.
func (d Dir) ID() (string, error) {
	path := filepath.Join(d.path, "id")
	data, err := os.ReadFile(path)
	if id := strings.TrimSpace(string(data)); err == nil && id != "" {
		return id, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("reading the state's id: %w", err)
	}
	id := strings.ToLower(rand.Text())
	return id, replace(path, []byte(id+"\n"))
}

// ClusterID is the id of the cluster that this state is of, empty before the first contact.
func (d Dir) ClusterID() (string, error) {
	data, err := os.ReadFile(filepath.Join(d.path, "cluster-id"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading the cluster's id: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

// KeepClusterID remembers the cluster's id.
func (d Dir) KeepClusterID(id string) error {
	return replace(filepath.Join(d.path, "cluster-id"), []byte(id+"\n"))
}

// ReadKubeconfig returns the kept kubeconfig, nil where none was kept yet.
func (d Dir) ReadKubeconfig() ([]byte, error) {
	data, err := os.ReadFile(d.Kubeconfig())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// WriteKubeconfig replaces the kept kubeconfig, mode 0600, in one step.
func (d Dir) WriteKubeconfig(data []byte) error { return replace(d.Kubeconfig(), data) }

// replace writes a file beside path and renames it, so that a reader sees the
// old or the new content and never half of it.
func replace(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // made with mode 0600
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	_, err = f.Write(data)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", path, err), os.Remove(f.Name()))
	}
	return nil
}
