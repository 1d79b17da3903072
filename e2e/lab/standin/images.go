package standin

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/gpuctl/gpuctl/e2e/lab/recipe"
)

// Image is a container image under its true name.
type Image struct {
	Ref   string
	Image v1.Image
}

// Images builds the images that a cluster of the stand-in pulls by itself: the
// pause container, and CoreDNS. src is the root of the e2e module.
func Images(ctx context.Context, c recipe.Cache, src string) ([]Image, error) {
	dir, err := c.Get(ctx, imagesRecipe(src))
	if err != nil {
		return nil, err
	}
	var images []Image
	for _, i := range []struct{ ref, program string }{
		{"docker.io/rancher/mirrored-pause:3.6", "pause"},
		{"docker.io/rancher/mirrored-coredns-coredns:1.14.7", "coredns"},
	} {
		img, err := image(filepath.Join(dir, i.program))
		if err != nil {
			return nil, err
		}
		images = append(images, Image{i.ref, img})
	}
	return images, nil
}

func imagesRecipe(src string) recipe.Recipe {
	dir := filepath.Join(src, "lab", "standin")
	return recipe.Recipe{
		Name:   "k3s-images",
		Inputs: []string{filepath.Join(dir, "coredns"), filepath.Join(dir, "cmd", "pause")},
		Build: func(ctx context.Context, out string) error {
			b := builder{src: dir}
			if err := b.build(ctx, "coredns", "", filepath.Join(out, "coredns"), "."); err != nil {
				return err
			}
			return b.build(ctx, "cmd/pause", "", filepath.Join(out, "pause"), ".")
		},
	}
}

// image is one layer with one static program, which is the entrypoint.
func image(program string) (v1.Image, error) {
	data, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	name := filepath.Base(program)
	var layer bytes.Buffer
	t := tar.NewWriter(&layer)
	if err := t.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(data)), Typeflag: tar.TypeReg}); err != nil {
		return nil, err
	}
	if _, err := t.Write(data); err != nil {
		return nil, err
	}
	if err := t.Close(); err != nil {
		return nil, err
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layer.Bytes())), nil })
	if err != nil {
		return nil, err
	}
	img, err := mutate.AppendLayers(empty.Image, l)
	if err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", "amd64"
	config.Config.Entrypoint = []string{"/" + name}
	return mutate.ConfigFile(img, config)
}
