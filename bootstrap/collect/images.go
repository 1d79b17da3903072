package collect

import (
	"context"
	"fmt"
	"io"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/gpuctl/gpuctl/bootstrap/k3s"
	"github.com/gpuctl/gpuctl/internal/bundle"
	"github.com/gpuctl/gpuctl/internal/image"
)

// images adds one archive of images, with what they share in it once.
func (j *Job) images(ctx context.Context, refs []string, arch string) error {
	refs = slices.Compact(slices.Sorted(slices.Values(refs)))
	from := image.Source{Mirror: j.options.Sources.Images, Mirrored: k3s.Mirrored()}
	pulled := make([]image.Pulled, len(refs))
	var asking errgroup.Group
	asking.SetLimit(8)
	for i, ref := range refs {
		asking.Go(func() (err error) {
			pulled[i], err = from.Pull(ctx, ref, arch) // layers are fetched later, by the same context
			return err
		})
	}
	if err := asking.Wait(); err != nil {
		return err
	}
	f := bundle.File{
		Kind: bundle.Images, Name: "gpu", Arch: arch, Suffix: ".tar", Source: "registries",
		Checked: "digests of the registries; the smoke image by the set's where it has one", License: licences(refs, pulled),
	}
	seen := map[string]bool{}
	for _, p := range pulled {
		f.Holds = append(f.Holds, p.Names...)
		for _, b := range p.Blobs {
			if !seen[b.SHA256] {
				seen[b.SHA256] = true
				f.Size += b.Size
			}
		}
	}
	j.items = append(j.items, item{
		file:  f,
		fetch: func(ctx context.Context, p *bundle.Parts) error { return fetchBlobs(ctx, pulled, p) },
		content: func(p *bundle.Parts) (bundle.Content, error) {
			return made(f, func(w io.Writer) error {
				return image.Layout(w, pulled, func(sum string, w io.Writer) error { return p.Copy(sum)(w) })
			})
		},
	})
	return nil
}

// fetchBlobs brings layers, a few at a time. One that is there already is not fetched again.
func fetchBlobs(ctx context.Context, pulled []image.Pulled, p *bundle.Parts) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	seen := map[string]bool{}
	for _, i := range pulled {
		for _, b := range i.Blobs {
			if seen[b.SHA256] || p.Has(b.SHA256, b.Size) {
				continue
			}
			seen[b.SHA256] = true
			group.Go(func() error {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				r, err := b.Open()
				if err != nil {
					return fmt.Errorf("%s: %w", i.Names[0], err)
				}
				defer r.Close()
				if err := p.Put(b.SHA256, r); err != nil {
					return fmt.Errorf("%s: %w", i.Names[0], err)
				}
				return nil
			})
		}
	}
	return group.Wait()
}

// licences is what the images say of themselves, each once.
func licences(refs []string, pulled []image.Pulled) string {
	said := map[string]bool{}
	unsaid := 0
	for i := range refs {
		if l := pulled[i].License; l != "" {
			said[l] = true
		} else {
			unsaid++
		}
	}
	var all []string
	for l := range said {
		all = append(all, l)
	}
	slices.Sort(all)
	out := ""
	for _, l := range all {
		out += l + "; "
	}
	if unsaid > 0 {
		out += fmt.Sprintf("%d images say nothing: see their publishers' terms (NVIDIA: https://developer.nvidia.com/ngc/nvidia-deep-learning-container-license)", unsaid)
	}
	return out
}
