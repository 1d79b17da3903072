package lab

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/e2e/lab/recipe"
)

func TestTheContainerHasTheProgramsOwnGo(t *testing.T) {
	for version, want := range map[string]string{
		"go1.26.8":                 "golang:1.26.8-bookworm",
		"go1.26.8 X:nodwarf5":      "golang:1.26.8-bookworm",
		"go1.26rc1":                "golang:1.26rc1-bookworm",
		"go1.26.8 (something new)": "golang:1.26.8-bookworm",
	} {
		if got := golang(version); got != want {
			t.Errorf("golang(%q) = %s, want %s", version, got, want)
		}
	}
}

// What is built in the container has to lie where the program outside looks for
// it, and the checkout is not to be changed.
func TestPreparationInAContainer(t *testing.T) {
	dir := t.TempDir()
	for name, value := range map[string]string{"GOMODCACHE": "mod", "GOCACHE": "build", "SSL_CERT_FILE": "ca.pem"} {
		t.Setenv(name, filepath.Join(dir, value))
	}
	if err := os.WriteFile(filepath.Join(dir, "ca.pem"), []byte("synthetic"), 0o644); err != nil {
		t.Fatal(err)
	}
	cache, err := recipe.At(filepath.Join(dir, "cache"))
	if err != nil {
		t.Fatal(err)
	}
	l := &Lab{ID: "x", cache: cache, options: Options{NoGPU: true}}
	args, err := l.prepareArgs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	src, err := sourceDir()
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Dir(src)
	for _, want := range [][]string{
		{"--volume", root + ":" + root + ":ro"},
		{"--volume", dir + "/mod:" + dir + "/mod"},
		{"--volume", dir + "/build:" + dir + "/build"},
		{"--volume", dir + "/cache:" + dir + "/cache"},
		{"--volume", dir + "/ca.pem:/etc/ssl/certs/ca-certificates.crt:ro"},
		{"--env", "GOMODCACHE=" + dir + "/mod"},
		{"--env", "GPUCTL_LAB_CACHE=" + dir + "/cache"},
		{"--env", "GOTOOLCHAIN=local"},
	} {
		if !has(args, want[0], want[1]) {
			t.Errorf("no %s in %s", strings.Join(want, " "), strings.Join(args, " "))
		}
	}
	if last := args[len(args)-1]; last != "--no-gpu" {
		t.Errorf("the options are not handed on: %q", last)
	}
}

func has(args []string, flag, value string) bool {
	for i := range args {
		if i > 0 && args[i] == value && args[i-1] == flag {
			return true
		}
	}
	return slices.Contains(args, flag+"="+value)
}
