package gpu

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/gpuctl/gpuctl/e2e/lab/recipe"
)

// tools is one set of upstream commands, built from a nested module.
type tools struct {
	name    string // directory below lab/nvidia
	cgo     bool
	ldflags string
	pkgs    []string
}

const (
	toolkitModule  = "github.com/NVIDIA/nvidia-container-toolkit"
	pluginModule   = "github.com/NVIDIA/k8s-device-plugin"
	operatorModule = "github.com/NVIDIA/gpu-operator"
	nfdModule      = "sigs.k8s.io/node-feature-discovery"

	// NVML is opened at run time: its functions stay unresolved till called.
	lazy = "-s -w -extldflags=-Wl,-z,lazy"
)

func toolkitTools(version string) tools {
	return tools{"toolkit", true, lazy + " -X " + toolkitModule + "/internal/info.version=" + strings.TrimSuffix(version, "-1"),
		below(toolkitModule+"/cmd/", "nvidia-cdi-hook", "nvidia-container-runtime", "nvidia-container-runtime-hook",
			"nvidia-container-runtime.cdi", "nvidia-ctk")}
}

func pluginTools() tools {
	return tools{"plugin", true, lazy + " -X " + pluginModule + "/internal/info.version=" + pluginVersion,
		below(pluginModule+"/cmd/", "config-manager", "gpu-feature-discovery", "mps-control-daemon", "nvidia-device-plugin")}
}

func operatorTools() tools {
	return tools{"operator", false, "-s -w -X " + operatorModule + "/internal/info.version=" + Operator,
		below(operatorModule+"/cmd/", "gpu-operator")}
}

func validatorTools() tools {
	return tools{"operator", true, lazy + " -X " + operatorModule + "/internal/info.version=" + Operator,
		below(operatorModule+"/", "validator")}
}

// nfdTools: without the path prefix NFD reads its own container instead of
// the node, and no error tells.
func nfdTools() tools {
	return tools{"nfd", false, "-s -w -X " + nfdModule + "/pkg/version.version=" + nfdVersion +
		" -X " + nfdModule + "/pkg/utils/hostpath.pathPrefix=/host-",
		below(nfdModule+"/cmd/", "nfd-gc", "nfd-master", "nfd-worker")}
}

func below(prefix string, names ...string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = prefix + n
	}
	return out
}

// recipe builds the commands into a directory of binaries.
func (t tools) recipe(src string) recipe.Recipe {
	dir := filepath.Join(src, "lab/nvidia", t.name)
	name := t.name
	if len(t.pkgs) == 1 {
		name = filepath.Base(t.pkgs[0])
	}
	return recipe.Recipe{
		Name:   "nvidia-" + name,
		Inputs: []string{filepath.Join(dir, "go.mod"), filepath.Join(dir, "go.sum")},
		Salt:   fmt.Sprint(t),
		Build: func(ctx context.Context, out string) error {
			return goBuild(ctx, dir, out, t.cgo, t.ldflags, t.pkgs...)
		},
	}
}

func goBuild(ctx context.Context, dir, out string, cgo bool, ldflags string, pkgs ...string) error {
	args := append([]string{"build", "-mod=readonly", "-trimpath", "-ldflags", ldflags, "-o", out + "/"}, pkgs...)
	enabled := "CGO_ENABLED=0"
	if cgo {
		enabled = "CGO_ENABLED=1"
	}
	_, err := run(ctx, dir, []string{enabled}, "go", args...)
	return err
}

// moduleDir downloads a module that is required in dir and says where it is.
func moduleDir(ctx context.Context, dir, module string) (string, error) {
	if _, err := run(ctx, dir, nil, "go", "mod", "download", module); err != nil {
		return "", err
	}
	out, err := run(ctx, dir, nil, "go", "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", module)
	return strings.TrimSpace(out), err
}

// run runs a build tool and returns its standard output; an error carries the
// end of what it said.
func run(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var out, msg strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &msg
	if err := cmd.Run(); err != nil {
		text := strings.TrimSpace(msg.String())
		return "", fmt.Errorf("%s %s: %w: %s", name, args[0], err, text[max(0, len(text)-2000):])
	}
	return out.String(), nil
}
