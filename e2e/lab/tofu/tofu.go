// Package tofu builds OpenTofu from its module, for tests that rent machines of
// the lab with it: machines of CI have neither Terraform nor OpenTofu.
package tofu

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/gpuctl/gpuctl/e2e/lab/recipe"
)

// Recipe builds the program tofu. src is the root of the e2e module; the version
// stands in lab/opentofu/go.mod.
func Recipe(src string) recipe.Recipe {
	dir := filepath.Join(src, "lab", "opentofu")
	return recipe.Recipe{
		Name:   "opentofu",
		Inputs: []string{filepath.Join(dir, "go.mod"), filepath.Join(dir, "go.sum")},
		Build: func(ctx context.Context, out string) error {
			cmd := exec.CommandContext(ctx, "go", "build", "-mod=readonly", "-trimpath", "-ldflags", "-s -w",
				"-o", filepath.Join(out, "tofu"), "github.com/opentofu/opentofu/cmd/tofu")
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
			if text, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("building OpenTofu: %w: %s", err, text)
			}
			return nil
		},
	}
}
