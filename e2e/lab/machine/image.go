// Package machine runs lab machines: containers with systemd and sshd that
// stand for rented virtual machines and are reached by SSH and nothing else.
package machine

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/gpuctl/gpuctl/e2e/lab/dockerd"
	"github.com/gpuctl/gpuctl/e2e/lab/recipe"
)

// imageFiles is the build context of the machine image.
//
//go:embed image
var imageFiles embed.FS

const (
	repository = "gpuctl-lab-machine"
	// Codename is the Debian release of the machines.
	Codename = "bookworm"
)

// packages is what a cloud image holds and a minimal Debian does not, and two
// login shells that are not like sh.
func packages() []string {
	return []string{
		"systemd", "systemd-sysv", "dbus", "openssh-server", "sudo", "curl", "ca-certificates",
		"iproute2", "iptables", "nftables", "conntrack", "ethtool", "iputils-ping", "netcat-openbsd",
		"kmod", "pciutils", "perl-base", "util-linux", "procps", "e2fsprogs", "less", "xz-utils", "zstd",
		"busybox", "fish", "tcsh",
	}
}

// Image returns the tag of the machine image and makes it first if the engine
// does not have it.
func Image(ctx context.Context, e *dockerd.Engine, cache recipe.Cache) (string, error) {
	build, digest, err := buildContext()
	if err != nil {
		return "", fmt.Errorf("packing the machine image: %w", err)
	}
	key, makeBase := hubBase()
	if dockerd.HasApt() {
		key, makeBase = bootstrappedBase(cache)
	}
	base, tag := repository+"-base:"+key, repository+":"+key+"-"+digest
	if has(ctx, e, tag) {
		return tag, nil
	}
	if !has(ctx, e, base) {
		if err := makeBase(ctx, e, base); err != nil {
			return "", fmt.Errorf("making the machine's base image: %w", err)
		}
	}
	return tag, buildImage(ctx, e, build, base, tag)
}

// maker makes an image of that tag.
type maker func(ctx context.Context, e *dockerd.Engine, tag string) error

// bootstrappedBase needs nothing but Debian's packages.
func bootstrappedBase(cache recipe.Cache) (key string, _ maker) {
	base := debian()
	return cache.Key(base), func(ctx context.Context, e *dockerd.Engine, tag string) error {
		dir, err := cache.Get(ctx, base)
		if err != nil {
			return err
		}
		_, err = e.Run(ctx, "import", filepath.Join(dir, "rootfs.tar"), tag)
		return err
	}
}

// hubBase is made of Docker's own Debian image: debootstrap needs root and
// Debian's tools, an engine does not. That image keeps services from starting
// and packages from being kept; a machine does neither.
func hubBase() (key string, _ maker) {
	file := "FROM debian:" + Codename + "-slim\n" +
		"RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends " + strings.Join(packages(), " ") +
		" && rm -f /usr/sbin/policy-rc.d /etc/apt/apt.conf.d/docker-*\n"
	sum := sha256.Sum256([]byte(file))
	return "hub-" + hex.EncodeToString(sum[:])[:20], func(ctx context.Context, e *dockerd.Engine, tag string) error {
		_, err := e.Pipe(ctx, strings.NewReader(file), "build", "--quiet", "--network", "host",
			"--label", dockerd.Label+"=image", "--tag", tag, "-")
		return err
	}
}

func buildImage(ctx context.Context, e *dockerd.Engine, build []byte, base, tag string) error {
	_, err := e.Pipe(ctx, bytes.NewReader(build), "build", "--quiet", "--network", "none",
		"--label", dockerd.Label+"=image", "--build-arg", "BASE="+base, "--tag", tag, "-")
	if err != nil {
		return fmt.Errorf("building the machine image: %w", err)
	}
	return nil
}

func has(ctx context.Context, e *dockerd.Engine, tag string) bool {
	_, err := e.Run(ctx, "image", "inspect", "--format", "{{.Id}}", tag)
	return err == nil
}

// debian is a minimal Debian 12 with the packages above, as rootfs.tar.
func debian() recipe.Recipe {
	return recipe.Recipe{
		Name: "debian-bookworm",
		Salt: strings.Join(packages(), " "),
		Build: func(ctx context.Context, out string) error {
			if _, err := exec.LookPath("debootstrap"); err != nil {
				if err := dockerd.Install(ctx, "debootstrap"); err != nil {
					return err
				}
			}
			root := filepath.Join(out, "rootfs")
			steps := [][]string{
				{"debootstrap", "--variant=minbase", "--include=" + strings.Join(packages(), ","), Codename, root},
				{"tar", "-C", root, "--numeric-owner", "--exclude=./var/cache/apt/archives/*.deb", "-cf", filepath.Join(out, "rootfs.tar"), "."},
			}
			for _, step := range steps {
				if msg, err := exec.CommandContext(ctx, step[0], step[1:]...).CombinedOutput(); err != nil {
					return fmt.Errorf("%s: %w: %s", step[0], err, msg[max(0, len(msg)-2000):])
				}
			}
			return os.RemoveAll(root)
		},
	}
}

// buildContext packs the embedded files for `docker build -` and returns their
// digest.
func buildContext() (archive []byte, digest string, err error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	root, err := fs.Sub(imageFiles, "image")
	if err != nil {
		return nil, "", err
	}
	err = fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(root, path)
		if err != nil {
			return err
		}
		header := &tar.Header{Name: path, Mode: 0o644, Size: int64(len(content))}
		if err := w.WriteHeader(header); err != nil {
			return err
		}
		_, err = w.Write(content)
		return err
	})
	if err != nil {
		return nil, "", err
	}
	if err := w.Close(); err != nil {
		return nil, "", err
	}
	sum := sha256.Sum256(buf.Bytes())
	return buf.Bytes(), hex.EncodeToString(sum[:])[:12], nil
}
