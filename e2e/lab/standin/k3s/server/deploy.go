package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/addon"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/files"
	"github.com/sirupsen/logrus"
)

// deploy writes the packaged manifests and applies everything in
// server/manifests, now and whenever a file changes. What the option disable
// names is deleted.
func (s *Server) deploy(ctx context.Context) {
	dir := s.Data.Server("manifests")
	if err := s.stage(ctx, dir); err != nil && ctx.Err() == nil {
		logrus.Errorf("Writing manifests: %v", err)
	}
	applied := map[string][sha256.Size]byte{}
	for ctx.Err() == nil {
		entries, _ := filepath.Glob(filepath.Join(dir, "*"))
		more, _ := filepath.Glob(filepath.Join(dir, "*", "*"))
		for _, file := range append(entries, more...) {
			s.applyChanged(ctx, file, applied)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

func (s *Server) stage(ctx context.Context, dir string) error {
	values := addon.Values{
		ClusterDNS: s.dns, ClusterDomain: s.domain, Registry: s.Options.String("system-default-registry"),
	}
	disabled := s.Options.List("disable")
	for name, text := range addon.Manifests(values) {
		file := filepath.Join(dir, name+".yaml")
		if files.Exists(filepath.Join(dir, name+".yaml.skip")) {
			continue
		}
		logrus.Infof("Writing manifest: %s", file)
		if err := files.Write(file, []byte(text), 0o600); err != nil {
			return err
		}
		if slices.Contains(disabled, name) {
			if err := s.kubectl(ctx, "delete", "--ignore-not-found", "--wait=false", "-f", file); err != nil {
				return err
			}
			if err := os.Remove(file); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Server) applyChanged(ctx context.Context, file string, applied map[string][sha256.Size]byte) {
	switch filepath.Ext(file) {
	case ".yaml", ".yml", ".json":
	default:
		return
	}
	text, err := os.ReadFile(file)
	sum := sha256.Sum256(text)
	if err != nil || applied[file] == sum || files.Exists(file+".skip") {
		return
	}
	if err := s.kubectl(ctx, "apply", "--server-side", "--force-conflicts", "--field-manager=deploy@"+s.ID.Name, "-f", file); err != nil {
		if ctx.Err() == nil {
			logrus.Errorf("Failed to process config: failed to process %s: %v", file, err)
		}
		return
	}
	applied[file] = sum
}

func (s *Server) kubectl(ctx context.Context, args ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(filepath.Dir(self), "kubectl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.Data.Cred("admin.kubeconfig"))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return &kubectlError{strings.TrimSpace(out.String()), err}
	}
	return nil
}

type kubectlError struct {
	text  string
	cause error
}

func (e *kubectlError) Error() string { return e.cause.Error() + ": " + e.text }
func (e *kubectlError) Unwrap() error { return e.cause }
