package collect

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/nvidia"
	"github.com/gpuctl/gpuctl/internal/bundle"
)

// repository is one flat apt repository with what is taken of it.
type repository struct {
	// dir is where it lies in the archive, key the file of its key there.
	dir, key string
	base     string
	keyText  []byte
	index    map[string][]byte // InRelease and lists, by name
	debs     []deb
}

// packages adds the archive of packages for an architecture.
func (j *Job) packages(ctx context.Context, arch string) error {
	o := j.options
	base := strings.TrimRight(o.Sources.Packages.URL, "/")
	at := func(upstream, mirrored string) string {
		if base == "" {
			return strings.TrimRight(upstream, "/")
		}
		return base + mirrored
	}
	toolkit := repository{dir: "stable/deb/" + arch, key: "gpgkey", base: at(o.Set.Toolkit.Repository, "/stable/deb") + "/" + arch}
	keyURL := at(o.Set.Toolkit.KeyURL, "/gpgkey")
	err := j.read(ctx, &toolkit, keyURL, o.Set.Toolkit.KeyFingerprint, func(all catalogue) ([]deb, error) {
		return all.closure(nvidia.Packages(), o.Toolkit)
	})
	if err != nil {
		return err
	}
	if err := j.addRepository(toolkit, bundle.File{Kind: bundle.Packages, Name: "toolkit", Version: o.Toolkit, Arch: arch, License: "Apache-2.0"}); err != nil {
		return err
	}
	for _, system := range o.Systems {
		if err := j.driver(ctx, system, arch); err != nil {
			return err
		}
	}
	return nil
}

// driver adds the driver packages of one system.
func (j *Job) driver(ctx context.Context, system, arch string) error {
	o := j.options
	where, err := nvidia.DriverSource(system, arch, strings.TrimRight(o.Sources.Packages.URL, "/"), o.Set.Driver.KeyFingerprint, o.Set.Driver.Keys)
	if err != nil {
		return err
	}
	dir := "cuda/repos/" + system + "/" + path.Base(where.Repository)
	r := repository{dir: dir, key: dir + "/" + path.Base(where.KeyURL), base: where.Repository}
	err = j.read(ctx, &r, where.KeyURL, where.KeyFingerprint, func(all catalogue) ([]deb, error) {
		names := []string{
			"nvidia-driver-pinning-" + o.Branch, "nvidia-open", "cuda-drivers", "nvidia-fabricmanager", "nvidia-fabricmanager-" + o.Branch,
		}
		have := slices.DeleteFunc(names, func(n string) bool { return all.newest(n, o.Branch) == nil })
		if len(have) == 0 {
			return nil, fmt.Errorf("%w driver %s", errNothing, o.Branch)
		}
		debs, err := all.closure(have, o.Branch)
		if err != nil {
			return nil, err
		}
		return append(debs, all.headers()...), nil
	})
	if err != nil {
		return err
	}
	return j.addRepository(r, bundle.File{
		Kind: bundle.Packages, Name: "driver-" + system, Version: o.Branch, Arch: arch,
		License: "NVIDIA's driver licence: https://www.nvidia.com/en-us/drivers/nvidia-license/linux/",
	})
}

// read brings a repository's key and lists, checks them as apt does, and chooses.
func (j *Job) read(ctx context.Context, r *repository, keyURL, fingerprint string, choose func(catalogue) ([]deb, error)) error {
	from := j.options.Sources.Packages
	key, err := from.Get(ctx, keyURL, 64<<10)
	if err != nil {
		return fmt.Errorf("fetching the key of %s: %w", r.base, err)
	}
	pinned, err := nvidia.PinnedKey(key, fingerprint)
	if err != nil {
		return fmt.Errorf("checking %s: %w", keyURL, err)
	}
	r.keyText = pinned
	signed, err := from.Get(ctx, r.base+"/InRelease", 4<<20)
	if err != nil {
		return fmt.Errorf("fetching the lists of %s: %w", r.base, err)
	}
	sums, err := releaseSums(signed, pinned)
	if err != nil {
		return fmt.Errorf("checking %s/InRelease: %w", r.base, err)
	}
	r.index = map[string][]byte{"InRelease": signed}
	var list []byte
	for _, name := range []string{"Packages", "Packages.gz"} {
		want, listed := sums[name]
		if !listed {
			continue
		}
		data, err := from.Get(ctx, r.base+"/"+name, 128<<20)
		if err != nil {
			if list == nil {
				continue
			}
			break
		}
		if got := sumOf(data); got != want {
			return fmt.Errorf("checking %s/%s: its SHA-256 is %s, signed is %s", r.base, name, got, want)
		}
		r.index[name] = data
		if list, err = unpacked(name, data); err != nil {
			return fmt.Errorf("reading %s/%s: %w", r.base, name, err)
		}
		break
	}
	if list == nil {
		return fmt.Errorf("%s has neither Packages nor Packages.gz", r.base)
	}
	all, err := parsePackages(list)
	if err != nil {
		return fmt.Errorf("reading the list of %s: %w", r.base, err)
	}
	if r.debs, err = choose(all); err != nil {
		return fmt.Errorf("%s: %w", r.base, err)
	}
	return nil
}

// addRepository adds a repository as one file of the bundle.
func (j *Job) addRepository(r repository, f bundle.File) error {
	client, err := j.options.Sources.Packages.Client(0)
	if err != nil {
		return err
	}
	f.Suffix, f.Source, f.Checked = ".tar", r.base, "the list signed by the repository's key, whose fingerprint is the set's"
	for _, d := range r.debs {
		f.Size += d.size
		f.Holds = append(f.Holds, d.name+"="+d.version)
	}
	j.items = append(j.items, item{
		file:  f,
		fetch: func(ctx context.Context, p *bundle.Parts) error { return r.fetch(ctx, client, p) },
		content: func(p *bundle.Parts) (bundle.Content, error) {
			return made(f, func(w io.Writer) error { return r.write(w, p) })
		},
	})
	return nil
}

func (r repository) fetch(ctx context.Context, client *http.Client, p *bundle.Parts) error {
	for _, d := range r.debs {
		if err := p.Fetch(ctx, client, r.base+"/"+d.file, d.sum); err != nil {
			return err
		}
	}
	return nil
}

// write makes the tar archive of a repository, the same bytes each time.
func (r repository) write(w io.Writer, p *bundle.Parts) error {
	t := tar.NewWriter(w)
	add := func(name string, size int64, body func(io.Writer) error) error {
		h := &tar.Header{Name: name, Mode: 0o644, Size: size, Typeflag: tar.TypeReg, ModTime: time.Unix(0, 0).UTC(), Format: tar.FormatPAX}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		return body(t)
	}
	text := func(data []byte) func(io.Writer) error {
		return func(w io.Writer) error {
			_, err := io.Copy(w, bytes.NewReader(data))
			return err
		}
	}
	errs := []error{add(r.key, int64(len(r.keyText)), text(r.keyText))}
	for _, name := range []string{"InRelease", "Packages", "Packages.gz"} {
		if data, ok := r.index[name]; ok {
			errs = append(errs, add(r.dir+"/"+name, int64(len(data)), text(data)))
		}
	}
	for _, d := range r.debs {
		errs = append(errs, add(path.Join(r.dir, d.file), d.size, p.Copy(d.sum)))
	}
	return errors.Join(append(errs, t.Close())...)
}
