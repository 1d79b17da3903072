package archive

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// file appends an archive of one program to an executable.
func file(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "prog"), []byte("content"), 0o755); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := Append(&out, strings.NewReader("executable"), dir); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "k3s")
	if err := os.WriteFile(path, out.Bytes(), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestUnpackGivesBackTheFiles(t *testing.T) {
	a, err := Find(file(t))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	dir := t.TempDir()
	if err := a.Unpack(dir); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "prog"))
	if err != nil || string(got) != "content" {
		t.Errorf("prog = %q, %v", got, err)
	}
}

func TestFindRefusesAFileCutOff(t *testing.T) {
	path := file(t)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data[:len(data)-3], 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(path); err == nil {
		t.Error("a file that was cut off was taken")
	}
}
