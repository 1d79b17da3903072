package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuctl/gpuctl/bootstrap"
	"github.com/gpuctl/gpuctl/bootstrap/collect"
	"github.com/gpuctl/gpuctl/bootstrap/spread"
	"github.com/gpuctl/gpuctl/charts"
	"github.com/gpuctl/gpuctl/internal/bundle"
	"github.com/gpuctl/gpuctl/internal/config"
)

func newBundle(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bundle",
		Short: "Pack everything for machines without the internet into one file",
		Long: `bundle collects what a set of versions installs into one file, for machines that
reach nothing but each other. gpuctl apply --bundle FILE takes everything from it.`,
		Example: "  gpuctl bundle create --os ubuntu24.04 --to gpu.tar\n  gpuctl bundle verify gpu.tar\n  gpuctl apply --bundle gpu.tar",
		Args:    knownCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newBundleCreate(a), newBundleVerify(a))
	return cmd
}

// bundleOptions are the flags of bundle create.
type bundleOptions struct {
	to, set, key    string
	arches, systems []string
	images          []string
	estimate        bool
}

func newBundleCreate(a *app) *cobra.Command {
	var o bundleOptions
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Collect k3s, packages, charts and images into one file",
		Long: `create collects the k3s binary and its images, packages of the NVIDIA Container
Toolkit, drivers for the systems named by --os, the chart, and the images of the
operator and of the smoke test. Each is checked as a machine would check it, and
named by its SHA-256; the manifest names sources and licences.

Where there is a gpuctl.yaml its versions, mirrors and logins are used. The size
is told first; --estimate stops there. A run that was cut off goes on where it
was: what is fetched already lies beside the file in FILE.parts.

Kernel headers and compilers, which a driver package needs to build its modules,
are the system's own and not in the bundle.`,
		Example: `  gpuctl bundle create --os ubuntu24.04 --to gpu.tar
  gpuctl bundle create --estimate
  openssl genpkey -algorithm ed25519 -out key.pem && gpuctl bundle create --sign key.pem`,
		Args: wants(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.bundleCreate(cmd.Context(), o, cmd.Flags().Changed("file"))
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.to, "to", "gpuctl-bundle.tar", "the `file` to write")
	f.StringVar(&o.set, "set", "", "the tested `set` of versions (default that of gpuctl.yaml, else the newest)")
	f.StringArrayVar(&o.arches, "arch", []string{"amd64"}, "`architecture` of the machines, amd64 or arm64; may be given more than once")
	f.StringArrayVar(&o.systems, "os", nil, "`system` to take driver packages for, such as ubuntu24.04; may be given more than once")
	f.StringArrayVar(&o.images, "image", nil, "a further `image`; may be given more than once")
	f.StringVar(&o.key, "sign", "", "private `key` to sign with (PEM, Ed25519)")
	f.BoolVar(&o.estimate, "estimate", false, "say how large it will be and stop")
	return cmd
}

func newBundleVerify(a *app) *cobra.Command {
	var key string
	cmd := &cobra.Command{
		Use:   "verify FILE",
		Short: "Read a bundle and hold everything against its checksums",
		Long: `verify reads the whole file and checks every checksum, that packages unpack into
their own folder alone, and with --key the signature.

Exit code 3: the bundle is damaged, hostile or not signed by that key.`,
		Example: "  gpuctl bundle verify gpu.tar\n  gpuctl bundle verify gpu.tar --key public.pem\n  gpuctl bundle verify gpu.tar -o json",
		Args:    wants(cobra.ExactArgs(1)),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.bundleVerify(cmd.Context(), args[0], key) },
	}
	cmd.Flags().StringVar(&key, "key", "", "public `key` that must have signed it (PEM, Ed25519)")
	return cmd
}

// collectError is a failure to bring something together: nothing was installed anywhere.
type collectError struct{ err error }

func (e *collectError) Error() string { return e.err.Error() }
func (e *collectError) Unwrap() error { return e.err }

func (a *app) bundleCreate(ctx context.Context, o bundleOptions, named bool) error {
	if a.flags.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, a.flags.timeout)
		defer cancel()
	}
	options, err := a.collecting(o, named)
	if err != nil {
		return err
	}
	var key ed25519.PrivateKey
	if o.key != "" {
		if key, err = bundle.PrivateKey(o.key); err != nil {
			return &usageError{err}
		}
	}
	job, err := collect.Look(ctx, options)
	if err != nil {
		return &collectError{fmt.Errorf("collecting a bundle: %w", err)}
	}
	estimate := job.Estimate()
	if _, err := fmt.Fprintf(a.err, "about %s in %d files\n", spread.Bytes(estimate.Size()), len(estimate.Files)); err != nil {
		return err
	}
	if o.estimate {
		return a.show(estimate, func(w io.Writer) error { return bundleText(w, estimate) })
	}
	if err := a.makeBundle(ctx, job, o, key, estimate); err != nil {
		return &collectError{err}
	}
	made, err := bundle.Open(o.to)
	if err != nil {
		return err
	}
	defer made.Close()
	return a.show(made.Manifest, func(w io.Writer) error { return bundleText(w, made.Manifest) })
}

func (a *app) makeBundle(ctx context.Context, job *collect.Job, o bundleOptions, key ed25519.PrivateKey, estimate bundle.Manifest) error {
	tell := &bytesTold{w: a.err, what: "fetching", total: estimate.Size(), last: time.Now()}
	parts, err := bundle.NewParts(o.to+".parts", tell.add)
	if err != nil {
		return err
	}
	contents, err := job.Fetch(ctx, parts)
	if err != nil {
		return err
	}
	tell = &bytesTold{w: a.err, what: "writing " + o.to, total: estimate.Size(), last: time.Now()}
	manifest := bundle.Manifest{Set: estimate.Set, Created: time.Now().UTC().Truncate(time.Second)}
	if err := bundle.Write(o.to, manifest, contents, key, tell.set); err != nil {
		return err
	}
	return parts.Remove()
}

// collecting are the options of a bundle: gpuctl.yaml's, where there is one, and the flags'.
func (a *app) collecting(o bundleOptions, named bool) (collect.Options, error) {
	c, err := config.Load(a.flags.file)
	if errors.Is(err, fs.ErrNotExist) && !named {
		c, err = config.Config{}, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return collect.Options{}, usagef("there is no %s here", a.flags.file)
	}
	if err != nil {
		return collect.Options{}, err
	}
	read := func(s config.Secret, field string) (string, error) {
		if s.Prompt && a.terminal.in {
			return a.readPassword(field + ": ")
		}
		return s.Read()
	}
	if c, err = c.Resolved(read); err != nil {
		return collect.Options{}, err
	}
	if o.set != "" {
		c.Spec.Set = o.set
	}
	set, err := charts.Load(c.Spec.Set)
	if err != nil {
		return collect.Options{}, &usageError{err}
	}
	options := bootstrap.Collecting(c, set)
	options.Arches, options.Images = o.arches, o.images
	for _, arch := range o.arches {
		if arch != "amd64" && arch != "arm64" {
			return collect.Options{}, usagef("--arch %q is neither amd64 nor arm64", arch)
		}
	}
	for _, system := range o.systems {
		options.Systems = append(options.Systems, strings.ReplaceAll(strings.ToLower(system), ".", ""))
	}
	options.Say = func(format string, args ...any) { _, _ = fmt.Fprintf(a.err, format+"\n", args...) }
	return options, nil
}

func (a *app) bundleVerify(ctx context.Context, file, key string) error {
	b, err := bundle.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return &usageError{err}
	}
	if err != nil {
		return err
	}
	defer b.Close()
	if key != "" {
		public, err := bundle.PublicKey(key)
		if err != nil {
			return &usageError{err}
		}
		if err := b.CheckSignature(public); err != nil {
			return err
		}
	}
	tell := &bytesTold{w: a.err, what: "checking", total: b.Size(), last: time.Now()}
	if err := b.Verify(ctx, tell.set); err != nil {
		return err
	}
	return a.show(b.Manifest, func(w io.Writer) error {
		signed := "not signed"
		switch {
		case key != "":
			signed = "signed by this key"
		case b.Signed():
			signed = "signed; by whom was not asked (--key)"
		}
		if _, err := fmt.Fprintf(w, "%s is whole, %s\n", file, signed); err != nil {
			return err
		}
		return bundleText(w, b.Manifest)
	})
}

func bundleText(w io.Writer, m bundle.Manifest) error {
	out := &writer{w: w}
	out.linef("set %s, %s", m.Set, spread.Bytes(m.Size()))
	for _, f := range m.Files {
		holds := ""
		if len(f.Holds) > 0 {
			holds = fmt.Sprintf(" (%d)", len(f.Holds))
		}
		out.linef("  %-8s  %s %s %s%s, %s", f.Kind, f.Name, f.Version, f.Arch, holds, spread.Bytes(f.Size))
	}
	return out.err
}
