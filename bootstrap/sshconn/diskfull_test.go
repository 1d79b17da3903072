//go:build unix

package sshconn_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/bootstrap/sshconn/sshtest"
	"github.com/gpuctl/gpuctl/internal/diag"
)

// The disk is full in the middle of an upload: the old file stays, nothing is
// left beside it, and the error leads to its entry.
func TestDiskFullInMidUpload(t *testing.T) {
	bin, dir := t.TempDir(), t.TempDir()
	full := "#!/bin/sh\nhead -c 8\necho 'cat: write error: No space left on device' >&2\nexit 1\n"
	if err := os.WriteFile(filepath.Join(bin, "cat"), []byte(full), 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := dial(t, target(t, sshtest.Start(t, sshtest.Options{Path: bin})), options(t))
	err := remote.WriteFile(t.Context(), c, remote.File{Path: path, Mode: 0o600, Content: []byte("a new content that does not fit")})
	if p, ok := diag.Explain(err); !ok || p.Code != "disk-too-small" {
		t.Errorf("%v is explained by %s", err, p.Code)
	}
	left, readErr := os.ReadDir(dir)
	if data, _ := os.ReadFile(path); string(data) != "old" || len(left) != 1 || readErr != nil {
		t.Errorf("the file is %q, beside it are %v, %v", data, left, readErr)
	}
}
