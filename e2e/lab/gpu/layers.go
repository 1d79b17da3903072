package gpu

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/gpuctl/gpuctl/e2e/lab/recipe"
)

const path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// parts finds what goes into images: binaries of the recipes, files of the
// modules, and literal text.
type parts struct {
	src   string
	cache recipe.Cache
}

// recipes are the sets of binaries by the name that a part begins with.
func (p parts) recipes() map[string]recipe.Recipe {
	return map[string]recipe.Recipe{
		"plugin": pluginTools().recipe(p.src), "gpu-operator": operatorTools().recipe(p.src),
		"validator": validatorTools().recipe(p.src), "nfd": nfdTools().recipe(p.src),
		"own": ownRecipe(p.src), "debian": debianRecipe(),
	}
}

// key changes when what the kind of part finds changes.
func (p parts) key(kind string) string {
	if r, ok := p.recipes()[kind]; ok {
		return p.cache.Key(r)
	}
	return kind
}

// find resolves "kind:path" to a file or directory on this machine.
func (p parts) find(ctx context.Context, part string) (string, error) {
	kind, path, _ := strings.Cut(part, ":")
	if kind == "operator-module" {
		dir, err := moduleDir(ctx, filepath.Join(p.src, "lab/nvidia/operator"), operatorModule)
		return filepath.Join(dir, path), err
	}
	r, ok := p.recipes()[kind]
	if !ok {
		return "", fmt.Errorf("no part %q", part)
	}
	dir, err := p.cache.Get(ctx, r)
	return filepath.Join(dir, path), err
}

// ownRecipe builds the lab's own commands that run in containers.
func ownRecipe(src string) recipe.Recipe {
	lab := filepath.Join(src, "lab/gpu")
	return recipe.Recipe{
		Name: "gpu-commands",
		Inputs: []string{filepath.Join(lab, "scenario"), filepath.Join(lab, "smi"),
			filepath.Join(lab, "cmd/standin"), filepath.Join(lab, "cmd/vectoradd")},
		Build: func(ctx context.Context, out string) error {
			return goBuild(ctx, src, out, false, "-s -w", "./lab/gpu/cmd/standin", "./lab/gpu/cmd/vectoradd")
		},
	}
}

// debianRecipe fetches a shell that needs no library.
func debianRecipe() recipe.Recipe {
	return recipe.Recipe{
		Name: "debian-shells",
		Build: func(ctx context.Context, out string) error {
			tmp, err := os.MkdirTemp(out, ".debs-")
			if err != nil {
				return err
			}
			defer os.RemoveAll(tmp)
			if _, err := run(ctx, tmp, nil, "apt-get", "download", "busybox-static", "bash-static"); err != nil {
				return err
			}
			debs, err := filepath.Glob(filepath.Join(tmp, "*.deb"))
			if err != nil {
				return err
			}
			for _, d := range debs {
				if _, err := run(ctx, tmp, nil, "dpkg-deb", "-x", d, out); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// build writes the image into out as an OCI layout.
func (p parts) build(ctx context.Context, s spec, out string) error {
	var layers []v1.Layer
	if s.base {
		base, err := p.baseLayer(ctx)
		if err != nil {
			return err
		}
		layers = append(layers, base)
	}
	if len(s.files) > 0 {
		l, err := p.layer(ctx, s.files)
		if err != nil {
			return err
		}
		layers = append(layers, l)
	}
	img, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		return err
	}
	config := v1.Config{Env: append([]string{"PATH=" + path}, s.env...), User: s.user, Entrypoint: s.entrypoint}
	if s.base && s.entrypoint == nil {
		config.Cmd = []string{"sh"}
	}
	file, err := img.ConfigFile()
	if err != nil {
		return err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Config = "linux", "amd64", config
	if img, err = mutate.ConfigFile(img, file); err != nil {
		return err
	}
	index, err := layout.Write(out, empty.Index)
	if err != nil {
		return err
	}
	return index.AppendImage(img)
}

// archive is a layer in the making.
type archive struct {
	*tar.Writer
	dirs map[string]bool
}

func (a archive) dir(name string) error {
	name = strings.Trim(name, "/")
	if name == "" || name == "." || a.dirs[name] {
		return nil
	}
	if err := a.dir(filepath.Dir(name)); err != nil {
		return err
	}
	a.dirs[name] = true
	mode := int64(0o755)
	if name == "tmp" {
		mode = 0o1777
	}
	return a.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: mode})
}

func (a archive) link(name, target string) error {
	if err := a.dir(filepath.Dir(name)); err != nil {
		return err
	}
	return a.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: strings.Trim(name, "/"), Linkname: target, Mode: 0o777})
}

func (a archive) file(name string, data []byte, mode int64) error {
	if err := a.dir(filepath.Dir(name)); err != nil {
		return err
	}
	if err := a.WriteHeader(&tar.Header{Name: strings.Trim(name, "/"), Mode: mode, Size: int64(len(data))}); err != nil {
		return err
	}
	_, err := a.Write(data)
	return err
}

// copy adds a file or a directory tree of this machine.
func (a archive) copy(name, from string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		mode := int64(0o644)
		if bytes.HasPrefix(data, []byte("\x7fELF")) || bytes.HasPrefix(data, []byte("#!")) {
			mode = 0o755
		}
		return a.file(filepath.Join(name, rel), data, mode)
	})
}

// pack runs fill and returns the layer, the same bytes for the same files.
func pack(fill func(archive) error) (v1.Layer, error) {
	var buf bytes.Buffer
	zip, err := gzip.NewWriterLevel(&buf, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	a := archive{tar.NewWriter(zip), map[string]bool{}}
	if err := fill(a); err != nil {
		return nil, err
	}
	if err := a.Close(); err != nil {
		return nil, err
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(buf.Bytes())), nil })
}

func (p parts) layer(ctx context.Context, files map[string]string) (v1.Layer, error) {
	return pack(func(a archive) error {
		for _, name := range slices.Sorted(maps.Keys(files)) {
			if text, ok := strings.CutPrefix(files[name], "="); ok {
				if err := a.file(name, []byte(text), 0o755); err != nil {
					return err
				}
				continue
			}
			from, err := p.find(ctx, files[name])
			if err != nil {
				return err
			}
			if err := a.copy(name, from); err != nil {
				return err
			}
		}
		return nil
	})
}

// baseLayer has what operand images need of a distribution: sh, bash, the
// usual commands, and libc for programs built with cgo.
func (p parts) baseLayer(ctx context.Context) (v1.Layer, error) {
	shells, err := p.cache.Get(ctx, debianRecipe())
	if err != nil {
		return nil, err
	}
	busybox := filepath.Join(shells, "bin/busybox")
	list, err := run(ctx, "", nil, busybox, "--list")
	if err != nil {
		return nil, err
	}
	return pack(func(a archive) error {
		files := map[string]string{
			"/bin/busybox": busybox, "/bin/bash": filepath.Join(shells, "bin/bash-static"),
			"/lib64/ld-linux-x86-64.so.2": "/lib64/ld-linux-x86-64.so.2", "/lib/x86_64-linux-gnu/libc.so.6": "/lib/x86_64-linux-gnu/libc.so.6",
		}
		for _, name := range slices.Sorted(maps.Keys(files)) {
			data, err := os.ReadFile(files[name])
			if err != nil {
				return err
			}
			if err := a.file(name, data, 0o755); err != nil {
				return err
			}
		}
		for _, command := range strings.Fields(list) {
			if command != "busybox" && command != "bash" {
				if err := a.link("/bin/"+command, "busybox"); err != nil {
					return err
				}
			}
		}
		for _, d := range []string{"/tmp", "/usr/bin", "/usr/sbin", "/usr/lib/x86_64-linux-gnu", "/sbin", "/etc", "/var/run", "/root"} {
			if err := a.dir(d); err != nil {
				return err
			}
		}
		if err := a.file("/etc/passwd", []byte("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"), 0o644); err != nil {
			return err
		}
		return a.file("/etc/group", []byte("root:x:0:\nnogroup:x:65534:\n"), 0o644)
	})
}
