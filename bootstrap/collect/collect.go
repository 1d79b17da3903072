// Package collect gathers what a set of versions installs into a bundle: k3s
// with its images, packages of the Container Toolkit and of drivers, charts, and
// the images that they and the smoke test run. Everything comes from the places
// and by the logins that machines would use, and is checked as they would check it.
package collect

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/gpuctl/gpuctl/bootstrap/k3s"
	"github.com/gpuctl/gpuctl/charts"
	"github.com/gpuctl/gpuctl/internal/bundle"
	"github.com/gpuctl/gpuctl/internal/source"
)

// Sources are mirrors; the zero value of one is the upstream place.
type Sources struct{ K3s, Packages, Charts, Images source.Source }

// Options say what is wanted.
type Options struct {
	Set charts.Set
	// Kubernetes, Toolkit and Branch are versions that differ from the set's; empty are the set's.
	Kubernetes, Toolkit, Branch string
	// Releases are the charts that are installed.
	Releases []charts.Release
	Sources  Sources
	// Arches are amd64, arm64 or both.
	Arches []string
	// Systems are those whose drivers are wanted, as NVIDIA's repositories name them: ubuntu2404, debian12.
	Systems []string
	// Images are further ones.
	Images []string
	// Say is told what is being done.
	Say func(format string, args ...any)
}

// Job is a bundle that is known and not fetched yet.
type Job struct {
	options Options
	items   []item
}

// item is one file of the bundle to be.
type item struct {
	// file has an estimate as its size.
	file bundle.File
	// fetch brings what it is made of; content makes it.
	fetch   func(context.Context, *bundle.Parts) error
	content func(*bundle.Parts) (bundle.Content, error)
}

// Look asks every place for what is wanted and how large it is. Nothing large is
// fetched yet.
func Look(ctx context.Context, o Options) (*Job, error) {
	if o.Kubernetes == "" {
		o.Kubernetes = o.Set.K3s.Version
	}
	if o.Toolkit == "" {
		o.Toolkit = o.Set.Toolkit.Version
	}
	if o.Branch == "" {
		o.Branch = o.Set.Driver.Branch
	}
	j := &Job{options: o}
	var refs []string
	for _, rel := range o.Releases {
		o.Say("looking at chart %s %s", rel.Chart.Name, rel.Chart.Version)
		found, err := j.chart(ctx, rel)
		if err != nil {
			return nil, err
		}
		refs = append(refs, found...)
	}
	refs = append(append(refs, o.Set.Smoke.Ref()), o.Images...)
	for _, arch := range o.Arches {
		o.Say("looking at k3s %s for %s", o.Kubernetes, arch)
		if err := j.k3s(ctx, arch); err != nil {
			return nil, err
		}
		o.Say("looking at packages for %s", arch)
		if err := j.packages(ctx, arch); err != nil {
			return nil, err
		}
		o.Say("looking at %d images for %s", len(refs), arch)
		if err := j.images(ctx, refs, arch); err != nil {
			return nil, err
		}
	}
	return j, nil
}

// Estimate is what is going to be there, with sizes as they were announced.
func (j *Job) Estimate() bundle.Manifest {
	m := bundle.Manifest{Set: j.options.Set.Name}
	for _, i := range j.items {
		m.Files = append(m.Files, i.file)
	}
	return m
}

// Fetch brings everything that is not in parts yet, and returns the bundle's contents.
func (j *Job) Fetch(ctx context.Context, parts *bundle.Parts) ([]bundle.Content, error) {
	var out []bundle.Content
	for _, i := range j.items {
		j.options.Say("fetching %s %s %s", i.file.Kind, i.file.Name, i.file.Version)
		if err := i.fetch(ctx, parts); err != nil {
			return nil, fmt.Errorf("collecting %s %s: %w", i.file.Kind, i.file.Name, err)
		}
	}
	for _, i := range j.items {
		c, err := i.content(parts)
		if err != nil {
			return nil, fmt.Errorf("collecting %s %s: %w", i.file.Kind, i.file.Name, err)
		}
		out = append(out, c)
	}
	return out, nil
}

// whole is an item that is one file at a URL.
func (j *Job) whole(f bundle.File, client *http.Client) item {
	return item{
		file:  f,
		fetch: func(ctx context.Context, p *bundle.Parts) error { return p.Fetch(ctx, client, f.Source, f.SHA256) },
		content: func(p *bundle.Parts) (bundle.Content, error) {
			size, err := p.Size(f.SHA256)
			f.Size = size
			return bundle.Content{File: f, WriteTo: p.Copy(f.SHA256)}, err
		},
	}
}

// made is the content of a file that is put together: it is made once to know
// its checksum and size, and once more where it is written.
func made(f bundle.File, write func(io.Writer) error) (bundle.Content, error) {
	h, n := sha256.New(), &length{}
	if err := write(io.MultiWriter(h, n)); err != nil {
		return bundle.Content{}, err
	}
	f.SHA256, f.Size = hex.EncodeToString(h.Sum(nil)), n.n
	return bundle.Content{File: f, WriteTo: write}, nil
}

type length struct{ n int64 }

func (l *length) Write(p []byte) (int, error) {
	l.n += int64(len(p))
	return len(p), nil
}

// k3s adds the binary and the release's own archive of images.
func (j *Job) k3s(ctx context.Context, arch string) error {
	from, version := j.options.Sources.K3s, j.options.Kubernetes
	r := k3s.ReleaseOf(from.URL, version, arch)
	client, err := from.Client(0)
	if err != nil {
		return err
	}
	list, err := from.Get(ctx, r.List, 1<<20)
	if err != nil {
		return fmt.Errorf("fetching checksums of k3s %s: %w", version, err)
	}
	sum, checked := "", "the set"
	if version == j.options.Set.K3s.Version {
		sum, _ = j.options.Set.Checksum(arch)
	}
	if sum == "" {
		sum, checked = r.Sum(list, r.Name), "the release's own list of checksums"
	}
	images, name := "", ""
	for _, ending := range []string{".tar.zst", ".tar.gz", ".tar"} {
		if name = "k3s-airgap-images-" + arch + ending; images == "" {
			if images = r.Sum(list, name); images != "" {
				break
			}
		}
	}
	if sum == "" || images == "" {
		return fmt.Errorf("%s names no checksum of k3s or of its images", r.List)
	}
	_, suffix, _ := strings.Cut(name, ".")
	for _, f := range []bundle.File{
		{Kind: bundle.K3s, Name: "k3s", Version: version, SHA256: sum, Source: r.Base + "/" + r.Name, Checked: checked},
		{Kind: bundle.Images, Name: "k3s", Version: version, Suffix: "." + suffix, SHA256: images, Source: r.Base + "/" + name, Checked: "the release's own list of checksums"},
	} {
		f.Arch, f.License = arch, "Apache-2.0"
		f.Size = announced(ctx, client, f.Source)
		j.items = append(j.items, j.whole(f, client))
	}
	return nil
}

// announced is the size that a server tells, 0 where it tells none.
func announced(ctx context.Context, client *http.Client, url string) int64 {
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, url, nil)
	if err != nil {
		return 0
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	return max(0, resp.ContentLength)
}

// chart adds a chart and returns the images that it runs.
func (j *Job) chart(ctx context.Context, rel charts.Release) ([]string, error) {
	from := j.options.Sources.Charts
	client, err := from.Client(0)
	if err != nil {
		return nil, err
	}
	checked := "the set"
	if rel.Chart.SHA256 == "" {
		checked = "the repository's index"
	}
	data, err := charts.New(nil, charts.Options{HTTP: client, Source: from}).Archive(ctx, rel.Chart)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	f := bundle.File{
		Kind: bundle.Chart, Name: rel.Chart.Name, Version: rel.Chart.Version, Suffix: ".tgz", SHA256: hex.EncodeToString(sum[:]),
		Size: int64(len(data)), Source: rel.Chart.Repository, Checked: checked, License: "Apache-2.0",
	}
	j.items = append(j.items, item{
		file:  f,
		fetch: func(context.Context, *bundle.Parts) error { return nil },
		content: func(*bundle.Parts) (bundle.Content, error) {
			return bundle.Content{File: f, WriteTo: func(w io.Writer) error {
				_, err := w.Write(data)
				return err
			}}, nil
		},
	})
	return charts.Images(data, rel)
}

// errNothing is for what a repository should have and has not.
var errNothing = errors.New("the repository has no")
