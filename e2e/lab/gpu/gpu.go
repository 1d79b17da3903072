// Package gpu builds the lab's simulated GPUs and the real NVIDIA software
// that runs on them: machine files, Debian packages, container images, and the
// GPU Operator's chart. What is real and what stands in is listed in
// ../nvidia/README.md.
package gpu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gpuctl/gpuctl/e2e/lab/gpu/scenario"
	"github.com/gpuctl/gpuctl/e2e/lab/recipe"
)

// Scenario is a machine's simulated GPUs; see package scenario.
type Scenario = scenario.Scenario

// Versions of what is built here.
const (
	// Toolkit is the version of the NVIDIA Container Toolkit packages.
	Toolkit = "1.20.2-1"
	// OlderToolkit is the same content under an older version, so that a pin
	// can be proven.
	OlderToolkit = "1.19.1-1"
	// Operator is the version of the chart and of the operator's images. The
	// commit it is built from comes before the release of v25.10.
	Operator = "v25.10.1-lab.1"
	// NextOperator is the same content under a newer version, and its device plugin
	// too, so that a move to another set can be seen.
	NextOperator = "v25.10.2-lab.1"

	pluginVersion     = "v0.18.0"
	nextPluginVersion = "v0.18.1-lab"
	nfdVersion        = "v0.17.3"
)

// H100 is a healthy machine with n H100 PCIe cards.
func H100(n int) Scenario { return scenario.H100(n) }

// A100 is a healthy machine with n A100 PCIe cards.
func A100(n int) Scenario { return scenario.A100(n) }

// T4 is a healthy machine with n Tesla T4 cards.
func T4(n int) Scenario { return scenario.T4(n) }

// HGX is a healthy machine with eight H100 behind NVSwitches.
func HGX() Scenario { return scenario.HGX() }

// NoDriver is a machine with n H100 PCIe cards and no driver.
func NoDriver(n int) Scenario { return scenario.NoDriver(n) }

// Nouveau is a machine with n H100 PCIe cards that nouveau holds, and no driver.
func Nouveau(n int) Scenario { return scenario.Nouveau(n) }

// MachineFiles returns a directory that is to be laid over the root of every
// machine. It holds /usr/lib/lab/gpu-boot, which the machine runs at every
// boot when it has a scenario, and the parts of the simulated driver.
func MachineFiles(ctx context.Context, c recipe.Cache) (string, error) {
	src, err := source()
	if err != nil {
		return "", err
	}
	return c.Get(ctx, machineRecipe(src))
}

// Debs returns a directory of .deb files: the NVIDIA Container Toolkit and its
// C library's stand-in, in both versions.
func Debs(ctx context.Context, c recipe.Cache) (string, error) {
	src, err := source()
	if err != nil {
		return "", err
	}
	return c.Get(ctx, debsRecipe(src, c))
}

// source finds the root of the e2e module from the working directory.
func source() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the lab's sources: %w", err)
	}
	for ; ; dir = filepath.Dir(dir) {
		for _, at := range []string{dir, filepath.Join(dir, "e2e")} {
			mod, err := os.ReadFile(filepath.Join(at, "go.mod"))
			if err == nil && strings.HasPrefix(string(mod), "module github.com/gpuctl/gpuctl/e2e\n") {
				return at, nil
			}
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("finding the lab's sources: the working directory is not in a checkout of gpuctl")
		}
	}
}
