package gpu

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/gpuctl/gpuctl/e2e/lab/recipe"
)

func machineRecipe(src string) recipe.Recipe {
	lab := filepath.Join(src, "lab/gpu")
	return recipe.Recipe{
		Name: "gpu-machine",
		Inputs: []string{
			filepath.Join(lab, "scenario"), filepath.Join(lab, "smi"), filepath.Join(lab, "boot"),
			filepath.Join(lab, "nvml"), filepath.Join(lab, "cmd/gpu-boot"), filepath.Join(lab, "cmd/nvidia-smi"),
		},
		Build: func(ctx context.Context, out string) error { return buildMachine(ctx, src, out) },
	}
}

// buildMachine fills out with usr/lib/lab/gpu-boot and usr/lib/lab/driver.
func buildMachine(ctx context.Context, src, out string) error {
	lab := filepath.Join(out, "usr/lib/lab")
	driver := filepath.Join(lab, "driver")
	if err := os.MkdirAll(driver, 0o755); err != nil {
		return err
	}
	if err := goBuild(ctx, src, lab, false, "-s -w", "./lab/gpu/cmd/gpu-boot"); err != nil {
		return err
	}
	if err := goBuild(ctx, src, driver, false, "-s -w", "./lab/gpu/cmd/nvidia-smi"); err != nil {
		return err
	}
	if err := buildNVML(ctx, src, driver); err != nil {
		return err
	}
	cuda := "int cuInit(unsigned f) { (void)f; return 100; }\n" // CUDA_ERROR_NO_DEVICE
	if err := compile(ctx, "libcuda", cuda, filepath.Join(driver, "libcuda.so"), "-shared", "-s", "-Wl,-soname,libcuda.so.1"); err != nil {
		return err
	}
	return buildModules(ctx, src, driver)
}

// buildNVML compiles the stand-in for libnvidia-ml.so. Every function of the
// real header that it does not have becomes "not supported": a missing one
// would end the process that calls it.
func buildNVML(ctx context.Context, src, driver string) error {
	nvml := filepath.Join(src, "lab/gpu/nvml/nvml.c")
	code, err := os.ReadFile(nvml)
	if err != nil {
		return err
	}
	mig, err := os.ReadFile(filepath.Join(src, "lab/gpu/nvml/mig.c"))
	if err != nil {
		return err
	}
	code = append(code, mig...)
	dir, err := moduleDir(ctx, filepath.Join(src, "lab/nvidia/toolkit"), "github.com/NVIDIA/go-nvml")
	if err != nil {
		return err
	}
	header, err := os.ReadFile(filepath.Join(dir, "pkg/nvml/nvml.h"))
	if err != nil {
		return err
	}
	return compile(ctx, "nvml", string(code)+notSupported(string(header), string(code)),
		filepath.Join(driver, "libnvidia-ml.so"), "-shared", "-s", "-Wl,-soname,libnvidia-ml.so.1")
}

// notSupported writes a C function for every one that header declares and
// code does not define.
func notSupported(header, code string) string {
	var b strings.Builder
	b.WriteString("\n")
	done := map[string]bool{}
	for _, m := range regexp.MustCompile(`DECLDIR\s+(nvml\w+)\s*\(`).FindAllStringSubmatch(header, -1) {
		name := m[1]
		if done[name] || regexp.MustCompile(`\b`+name+`\(`).MatchString(code) {
			continue
		}
		done[name] = true
		fmt.Fprintf(&b, "int %s(void) { return NOT_SUPPORTED; }\n", name)
	}
	return b.String()
}

// buildModules makes the .ko files of both flavours. The licenses are what
// tells them apart: https://github.com/NVIDIA/open-gpu-kernel-modules.
func buildModules(ctx context.Context, src, driver string) error {
	code, err := os.ReadFile(filepath.Join(src, "lab/gpu/nvml/module.c"))
	if err != nil {
		return err
	}
	for flavour, license := range map[string]string{"open": "Dual MIT/GPL", "proprietary": "NVIDIA"} {
		if err := os.MkdirAll(filepath.Join(driver, flavour), 0o755); err != nil {
			return err
		}
		for name, needs := range map[string]string{
			"nvidia": "", "nvidia-uvm": "nvidia", "nvidia-modeset": "nvidia", "nvidia-drm": "nvidia-modeset",
		} {
			defines := fmt.Sprintf("#define LICENSE \"license=%s\"\n#define NAME %q\n#define DEPENDS %q\n",
				license, strings.ReplaceAll(name, "-", "_"), needs)
			if err := compile(ctx, name, defines+string(code), filepath.Join(driver, flavour, name+".ko"), "-c"); err != nil {
				return err
			}
		}
	}
	return nil
}

func compile(ctx context.Context, name, code, out string, flags ...string) error {
	file := filepath.Join(filepath.Dir(out), name+".c")
	if err := os.WriteFile(file, []byte(code), 0o644); err != nil {
		return err
	}
	defer os.Remove(file)
	args := append([]string{"-std=gnu11", "-O2", "-fPIC", "-Wall", "-o", out, file}, flags...)
	if _, err := run(ctx, "", nil, "gcc", args...); err != nil {
		return fmt.Errorf("compiling %s: %w", name, err)
	}
	return nil
}
