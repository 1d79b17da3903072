// Package containerd writes what k3s writes for containerd before it starts
// it: config.toml with the runtimes found on the machine, and the registry
// mirrors. Source: k3s pkg/agent/{templates,containerd}.
package containerd

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"text/template"

	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/files"
	"github.com/sirupsen/logrus"
)

//go:embed config-v3.toml.tmpl
var baseTemplate string

// Settings are the values of one generated config.toml.
type Settings struct {
	AgentDir       string // <data dir>/agent
	Address        string // socket
	State          string
	BinDir         string // CNI plugins
	PauseImage     string
	Snapshotter    string
	DefaultRuntime string
	SystemdCgroup  bool
	Runtimes       []Runtime
	Auths          []Auth
	// KeepOOMScore is set where the process may not lower its OOM score
	// (no CAP_SYS_RESOURCE): containers then keep the score of containerd.
	KeepOOMScore bool
}

// Path is the place of the generated file.
func (s Settings) Path() string { return filepath.Join(s.AgentDir, "etc/containerd/config.toml") }

// Write checks the default runtime, renders config.toml and writes it.
func (s Settings) Write() error {
	if err := s.check(); err != nil {
		return err
	}
	text, err := s.render()
	if err != nil {
		return err
	}
	return files.Write(s.Path(), text, 0o644)
}

// check refuses a default runtime that was not found. runc is not in the list
// of found runtimes, so it is refused as well.
func (s Settings) check() error {
	if s.DefaultRuntime == "" {
		return nil
	}
	for _, r := range s.Runtimes {
		if r.Name == s.DefaultRuntime {
			return nil
		}
	}
	return fmt.Errorf("default runtime %s was not found", s.DefaultRuntime)
}

// render uses the administrator's template if there is one, else the base.
func (s Settings) render() ([]byte, error) {
	base, err := template.New("base").Parse(baseTemplate)
	if err != nil {
		return nil, err
	}
	use := base
	user := filepath.Join(s.AgentDir, "etc/containerd/config-v3.toml.tmpl")
	text, err := os.ReadFile(user)
	switch {
	case err == nil:
		logrus.Infof("Using containerd config template at %s", user)
		if use, err = base.New("compiled").Parse(string(text)); err != nil {
			return nil, err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	var out bytes.Buffer
	if err := use.Execute(&out, s); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
