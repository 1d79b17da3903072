package provision

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The modules keep to what this package reads: every key of their output is a
// field of Machine, and the variable that scale sets is there.
func TestModulesKeepTheContract(t *testing.T) {
	if got := Modules(); strings.Join(got, " ") != "aws google local" {
		t.Fatalf("modules %v", got)
	}
	known := []string{"name", "role", "group", "host", "private", "user", "gpus"}
	for _, name := range Modules() {
		dir := filepath.Join(t.TempDir(), "infra")
		if err := WriteModule(name, dir); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(dir, "main.tf"))
		if err != nil {
			t.Fatal(err)
		}
		text := string(data)
		_, output, found := strings.Cut(text, `output "gpuctl" {`)
		if !found || !strings.Contains(text, `variable "gpus"`) {
			t.Errorf("%s: no output gpuctl, or no variable gpus", name)
		}
		for _, key := range regexp.MustCompile(`(?m)^    (\w+)\s+=`).FindAllStringSubmatch(output, -1) {
			if !slices.Contains(known, key[1]) {
				t.Errorf("%s: %q is no field of the contract", name, key[1])
			}
		}
		if name != "local" && !strings.Contains(text, "Checked for form only") {
			t.Errorf("%s does not say how far it was checked", name)
		}
		if err := WriteModule(name, dir); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s over what is there: %v", name, err)
		}
	}
	if err := WriteModule("../modules", filepath.Join(t.TempDir(), "x")); err == nil {
		t.Error("a path became a module")
	}
}
