package lab

import (
	"context"
	"fmt"
	"path/filepath"

	namepkg "github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/gpuctl/gpuctl/e2e/lab/gpu"
	"github.com/gpuctl/gpuctl/e2e/lab/recipe"
	"github.com/gpuctl/gpuctl/e2e/lab/standin"
)

// refAnnotation names an image in a layout, as the image specification says.
const refAnnotation = "org.opencontainers.image.ref.name"

// k3sImages are the images of the stand-in, packed once: compressing them takes
// longer than all the rest of a lab's start.
func k3sImages(ctx context.Context, cache recipe.Cache, src string) ([]gpu.Image, error) {
	packed, err := cache.Get(ctx, recipe.Recipe{
		Name:   "k3s-images-packed",
		Inputs: k3sImageInputs(src),
		Build: func(ctx context.Context, out string) error {
			images, err := standin.Images(ctx, cache, src)
			if err != nil {
				return err
			}
			path, err := layout.Write(out, empty.Index)
			if err != nil {
				return err
			}
			for _, i := range images {
				err := path.AppendImage(i.Image, layout.WithAnnotations(map[string]string{refAnnotation: i.Ref}))
				if err != nil {
					return err
				}
			}
			return nil
		},
	})
	if err != nil {
		return nil, err
	}
	return readLayout(packed)
}

// airgap is the archive of the stand-in's images, as a release of k3s has one.
func airgap(ctx context.Context, cache recipe.Cache, src string, images []gpu.Image) (string, error) {
	const name = "images.tar"
	dir, err := cache.Get(ctx, recipe.Recipe{
		Name:   "k3s-airgap",
		Inputs: k3sImageInputs(src),
		Build: func(_ context.Context, out string) error {
			all := map[namepkg.Reference]v1.Image{}
			for _, i := range images {
				ref, err := namepkg.ParseReference(i.Ref)
				if err != nil {
					return err
				}
				all[ref] = i.Image
			}
			return tarball.MultiRefWriteToFile(filepath.Join(out, name), all)
		},
	})
	return filepath.Join(dir, name), err
}

func k3sImageInputs(src string) []string {
	dir := filepath.Join(src, "lab", "standin")
	return []string{filepath.Join(dir, "coredns"), filepath.Join(dir, "cmd", "pause"), filepath.Join(dir, "images.go")}
}

// readLayout opens the images of an OCI layout by their annotated names.
func readLayout(dir string) ([]gpu.Image, error) {
	path, err := layout.FromPath(dir)
	if err != nil {
		return nil, fmt.Errorf("reading images: %w", err)
	}
	index, err := path.ImageIndex()
	if err != nil {
		return nil, fmt.Errorf("reading images: %w", err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("reading images: %w", err)
	}
	var images []gpu.Image
	for _, d := range manifest.Manifests {
		var image v1.Image
		if image, err = path.Image(d.Digest); err != nil {
			return nil, fmt.Errorf("reading image %s: %w", d.Annotations[refAnnotation], err)
		}
		images = append(images, gpu.Image{Ref: d.Annotations[refAnnotation], Image: image})
	}
	return images, nil
}
