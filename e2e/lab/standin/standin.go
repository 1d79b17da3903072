// Package standin builds the lab's stand-in for k3s: one self-extracting file
// k3s made of upstream Kubernetes, etcd, containerd and CNI plugins, that
// behaves as k3s does as far as an installer can see. README.md says what it
// imitates and what not.
package standin

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/gpuctl/gpuctl/e2e/lab/recipe"
)

// Versions of what is in the file besides Kubernetes.
const (
	containerdVersion = "2.3.7-k3s1"
	crictlVersion     = "v1.34.0-k3s1"
	runcVersion       = "1.1.5+ds1-1+deb12u1" // Debian 12's; needs libc and libseccomp2 on the machine
)

// Recipe builds the file k3s. src is the root of the e2e module; version is
// what the file says of itself, e.g. "v1.34.4+k3s1", and has to be a version
// of the Kubernetes module that k3s/go.mod names.
func Recipe(src, version string) recipe.Recipe {
	dir := filepath.Join(src, "lab", "standin")
	return recipe.Recipe{
		Name: "k3s",
		Inputs: []string{
			filepath.Join(dir, "k3s"), filepath.Join(dir, "containerd"),
			filepath.Join(dir, "cri-tools"), filepath.Join(dir, "cni"),
		},
		Salt: strings.Join([]string{version, containerdVersion, crictlVersion, runcVersion}, " "),
		Build: func(ctx context.Context, out string) error {
			tmp, err := os.MkdirTemp("", "k3s-standin-")
			if err != nil {
				return err
			}
			defer os.RemoveAll(tmp)
			b := builder{src: dir, tmp: tmp, bin: filepath.Join(tmp, "bin"), version: version}
			return b.file(ctx, filepath.Join(out, "k3s"))
		},
	}
}

// builder builds the programs into bin and packs them.
type builder struct{ src, tmp, bin, version string }

func (b builder) file(ctx context.Context, out string) error {
	if err := os.MkdirAll(b.bin, 0o755); err != nil {
		return err
	}
	launcher, pack := filepath.Join(b.tmp, "launcher"), filepath.Join(b.tmp, "pack")
	for _, step := range []struct{ module, flags, out, packages string }{
		{"k3s", b.stamp(), b.bin + "/", "./cmd/k3s"},
		{"containerd", "-X github.com/containerd/containerd/v2/version.Version=" + containerdVersion, b.bin + "/", containerdPackages},
		{"cri-tools", "-X sigs.k8s.io/cri-tools/pkg/version.Version=" + crictlVersion, b.bin + "/", "sigs.k8s.io/cri-tools/cmd/crictl"},
		{"cni", "", b.bin + "/", cniPackages},
		{"k3s", "-X main.release=" + b.version, launcher, "./cmd/launcher"},
		{"k3s", "", pack, "./cmd/pack"},
	} {
		if err := b.build(ctx, step.module, step.flags, step.out, strings.Fields(step.packages)...); err != nil {
			return err
		}
	}
	if err := b.runc(ctx); err != nil {
		return err
	}
	return run(exec.CommandContext(ctx, pack, launcher, b.bin, out))
}

const (
	containerdPackages = "github.com/containerd/containerd/v2/cmd/containerd " +
		"github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2 github.com/containerd/containerd/v2/cmd/ctr"
	plugins     = "github.com/containernetworking/plugins/plugins/"
	cniPackages = plugins + "ipam/host-local " + plugins + "main/bridge " + plugins + "main/loopback " +
		plugins + "meta/bandwidth " + plugins + "meta/firewall " + plugins + "meta/portmap"
)

// stamp sets the version that the components of Kubernetes show.
func (b builder) stamp() string {
	parts := strings.SplitN(strings.TrimPrefix(b.version, "v"), ".", 3)
	var flags []string
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for name, value := range map[string]string{
			"gitVersion": b.version, "gitMajor": parts[0], "gitMinor": parts[1], "gitTreeState": "clean",
		} {
			flags = append(flags, "-X "+pkg+"."+name+"="+value)
		}
	}
	return strings.Join(flags, " ")
}

func (b builder) build(ctx context.Context, module, flags, out string, packages ...string) error {
	args := []string{"build", "-trimpath", "-ldflags", strings.TrimSpace("-s -w " + flags), "-o", out}
	cmd := exec.CommandContext(ctx, "go", append(args, packages...)...)
	cmd.Dir = filepath.Join(b.src, module)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	return run(cmd)
}

// runc takes Debian's: building it needs libseccomp's headers.
func (b builder) runc(ctx context.Context) error {
	get := exec.CommandContext(ctx, "apt-get", "download", "runc="+runcVersion)
	get.Dir = b.tmp
	if err := run(get); err != nil {
		return err
	}
	found, err := filepath.Glob(filepath.Join(b.tmp, "runc_*.deb"))
	if err != nil || len(found) != 1 {
		return fmt.Errorf("looking for runc's package: found %v, %w", found, err)
	}
	tree := filepath.Join(b.tmp, "runc")
	if err := run(exec.CommandContext(ctx, "dpkg-deb", "-x", found[0], tree)); err != nil {
		return err
	}
	data, err := os.ReadFile(filepath.Join(tree, "usr/sbin/runc"))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(b.bin, "runc"), data, 0o755)
}

func run(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, out)
	}
	return nil
}
