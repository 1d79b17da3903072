package lab

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/gpuctl/gpuctl/e2e/lab/gpu"
	"github.com/gpuctl/gpuctl/e2e/lab/machine"
	"github.com/gpuctl/gpuctl/e2e/lab/mirror"
	"github.com/gpuctl/gpuctl/e2e/lab/recipe"
	"github.com/gpuctl/gpuctl/e2e/lab/standin"
)

// contents is what a lab serves and lays in its machines, as built or cached.
type contents struct {
	program string // the mirror's
	build   string // its key
	k3s     string // the binary; empty for none
	airgap  string // the archive of its images
	debs    []string
	drivers []string // packages of the driver's own repository
	charts  []string
	images  []gpu.Image
	overlay map[string]machine.File
}

func (c contents) has(ref string) bool {
	return slices.ContainsFunc(c.images, func(i gpu.Image) bool { return i.Ref == ref })
}

// build builds what is not cached, one thing after the other: each of them
// keeps all cores busy.
func (l *Lab) build(ctx context.Context) (c contents, err error) {
	src, err := sourceDir()
	if err != nil {
		return c, err
	}
	program := mirrorRecipe(src)
	c.build = l.cache.Key(program)
	err = l.step(ctx, "mirror program", func(ctx context.Context) error {
		dir, err := l.cache.Get(ctx, program)
		c.program = filepath.Join(dir, "mirror")
		return err
	})
	if err != nil || l.options.Bare {
		return c, err
	}
	if err := l.buildK3s(ctx, src, &c); err != nil || l.options.NoGPU {
		return c, err
	}
	return c, l.buildGPU(ctx, &c)
}

func (l *Lab) buildK3s(ctx context.Context, src string, c *contents) error {
	err := l.step(ctx, "k3s stand-in", func(ctx context.Context) error {
		dir, err := l.cache.Get(ctx, standin.Recipe(src, K3sVersion))
		c.k3s = filepath.Join(dir, "k3s")
		return err
	})
	if err != nil {
		return err
	}
	return l.step(ctx, "k3s images", func(ctx context.Context) (err error) {
		if c.images, err = k3sImages(ctx, l.cache, src); err != nil {
			return err
		}
		c.airgap, err = airgap(ctx, l.cache, src, c.images)
		return err
	})
}

func (l *Lab) buildGPU(ctx context.Context, c *contents) error {
	err := l.step(ctx, "simulated GPUs", func(ctx context.Context) error {
		dir, err := gpu.MachineFiles(ctx, l.cache)
		if err != nil {
			return err
		}
		c.overlay, err = machine.Tree(dir)
		return err
	})
	if err != nil {
		return err
	}
	err = l.step(ctx, "NVIDIA packages", func(ctx context.Context) error {
		dir, err := gpu.Debs(ctx, l.cache)
		if err != nil {
			return err
		}
		c.debs, err = filepath.Glob(filepath.Join(dir, "*.deb"))
		return err
	})
	if err != nil {
		return err
	}
	err = l.step(ctx, "driver packages", func(ctx context.Context) error {
		dir, err := gpu.Drivers(ctx, l.cache)
		if err != nil {
			return err
		}
		c.drivers, err = filepath.Glob(filepath.Join(dir, "*.deb"))
		return err
	})
	if err != nil {
		return err
	}
	err = l.step(ctx, "charts", func(ctx context.Context) error {
		dir, err := gpu.Charts(ctx, l.cache)
		if err != nil {
			return err
		}
		c.charts, err = filepath.Glob(filepath.Join(dir, "*.tgz"))
		return err
	})
	if err != nil {
		return err
	}
	return l.step(ctx, "NVIDIA images", func(ctx context.Context) error {
		images, err := gpu.Images(ctx, l.cache)
		for _, i := range images {
			if !c.has(i.Ref) { // pause comes with k3s
				c.images = append(c.images, i)
			}
		}
		return err
	})
}

// mirrorRecipe builds the mirror's command.
func mirrorRecipe(src string) recipe.Recipe {
	return recipe.Recipe{
		Name: "mirror",
		Inputs: []string{
			filepath.Join(src, "lab", "mirror"), filepath.Join(src, "lab", "cmd", "mirror"), filepath.Join(src, "go.mod"),
		},
		Build: func(ctx context.Context, out string) error {
			cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", out+"/", "./lab/cmd/mirror")
			cmd.Dir = src
			if msg, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("go build: %w: %s", err, msg)
			}
			return nil
		},
	}
}

func (l *Lab) mirrorDir() string { return filepath.Join(l.Dir, "mirror") }

// serve lays what the mirror serves and starts it.
func (l *Lab) serve(ctx context.Context, c contents) error {
	dir := l.mirrorDir()
	if c.k3s != "" {
		if err := mirror.WriteK3s(filepath.Join(dir, "k3s"), K3sVersion, c.k3s, c.airgap); err != nil {
			return err
		}
	}
	key, err := mirror.SigningKey(filepath.Join(l.Dir, "apt-signing-key"))
	if err != nil {
		return err
	}
	if err := mirror.WriteApt(filepath.Join(dir, "apt"), c.debs, key); err != nil {
		return err
	}
	if err := mirror.WriteDrivers(filepath.Join(dir, "apt"), c.drivers, key); err != nil {
		return err
	}
	if err := mirror.WriteCharts(filepath.Join(dir, "charts"), c.charts); err != nil {
		return err
	}
	l.Mirror, err = mirror.Start(ctx, c.program, l.Main.Gateway, mirror.Config{
		Dir: dir, Blobs: filepath.Join(l.cache.Dir(), "blobs"), Build: c.build,
	})
	if err != nil {
		return err
	}
	return gpu.Push(ctx, l.Mirror, c.images)
}

// Sources is the value of spec.sources in gpuctl.yaml.
func (l *Lab) Sources() map[string]string {
	base := "http://" + l.Mirror
	return map[string]string{
		"k3s": base + "/k3s", "packages": base + "/apt", "charts": base + "/charts", "images": base,
	}
}

// Requests reads what machines fetched from the mirror since the offset from,
// and returns the offset to go on at.
func (l *Lab) Requests(from int64) (requests []mirror.Request, next int64, err error) {
	return mirror.Requests(l.mirrorDir(), from)
}
