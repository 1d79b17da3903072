// Package image reads the configurations of container images from their
// registries, to say what they need before a node pulls them.
package image

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/gpuctl/gpuctl/internal/cuda"
	"github.com/gpuctl/gpuctl/internal/source"
)

// Source says where images are read from. Logins are those of docker and podman
// on this computer (docker login).
type Source struct {
	// Mirror is a registry that serves each upstream registry below its host
	// name, as sources.images has it, with its login and certificates; the zero
	// value is none. What the mirror lacks is read upstream, as the nodes do.
	Mirror source.Source
	// Mirrored are the registries whose images the mirror has.
	Mirrored []string
	// RootCAs are further certificates in PEM to trust, of registries of one's own.
	RootCAs []byte
}

// ReadError says why an image's configuration was not read.
type ReadError struct {
	Image string
	// Absent: the registry answered that it has no such image.
	Absent bool
	Err    error
}

func (e *ReadError) Error() string { return fmt.Sprintf("reading image %s: %v", e.Image, e.Err) }
func (e *ReadError) Unwrap() error { return e.Err }

// DiagCode is the entry of the failure catalogue that explains it.
func (e *ReadError) DiagCode() string {
	if e.Absent {
		return "smoke-image-pull"
	}
	return cuda.CodeNotJudged
}

// Check says whether a reference can be one.
func Check(ref string) error {
	if _, err := name.ParseReference(ref); err != nil {
		return fmt.Errorf("%q is no image: %w", ref, err)
	}
	return nil
}

// Read returns what an image says of CUDA, for one architecture as Go names it
// ("amd64"). The error is a *ReadError.
func (s Source) Read(ctx context.Context, ref, arch string) (cuda.Image, error) {
	config, err := s.config(ctx, ref, arch)
	if err != nil {
		return cuda.Image{}, err
	}
	var history []string
	for _, h := range config.History {
		history = append(history, h.CreatedBy)
	}
	return cuda.OfConfig(config.Config.Env, history), nil
}

func (s Source) config(ctx context.Context, text, arch string) (*v1.ConfigFile, error) {
	upstream, err := name.ParseReference(text)
	if err != nil {
		return nil, &ReadError{text, false, err}
	}
	var failed error
	if mirrored, prefix, ok := s.mirrored(upstream); ok {
		config, err := s.fromMirror(ctx, mirrored, prefix, arch)
		if err == nil {
			return config, nil
		}
		failed = fmt.Errorf("the mirror %s: %w", s.Mirror.URL, err)
	}
	rt, err := transportTrusting(s.RootCAs)
	if err != nil {
		return nil, &ReadError{text, false, err}
	}
	config, err := read(ctx, upstream, arch, rt, remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err != nil {
		return nil, &ReadError{text, absent(err), errors.Join(failed, err)}
	}
	return config, nil
}

func (s Source) fromMirror(ctx context.Context, ref name.Reference, prefix, arch string) (*v1.ConfigFile, error) {
	rt, login, err := s.mirrorAccess(prefix)
	if err != nil {
		return nil, err
	}
	return read(ctx, ref, arch, rt, login)
}

// mirrorAccess is how to be let into the mirror.
func (s Source) mirrorAccess(prefix string) (http.RoundTripper, remote.Option, error) {
	rt, err := transportTrusting(append([]byte(s.Mirror.CA+"\n"), s.RootCAs...))
	if err != nil {
		return nil, nil, err
	}
	login := remote.WithAuthFromKeychain(authn.DefaultKeychain)
	switch {
	case s.Mirror.Token != "":
		login = remote.WithAuth(&authn.Bearer{Token: s.Mirror.Token})
	case s.Mirror.Username != "":
		login = remote.WithAuth(&authn.Basic{Username: s.Mirror.Username, Password: s.Mirror.Password})
	}
	return below(prefix, rt), login, nil
}

func read(ctx context.Context, ref name.Reference, arch string, rt http.RoundTripper, login remote.Option) (*v1.ConfigFile, error) {
	platform := v1.Platform{OS: "linux", Architecture: arch}
	found, err := remote.Get(ref, remote.WithContext(ctx), remote.WithTransport(rt), remote.WithPlatform(platform), login)
	if err != nil {
		return nil, err
	}
	img, err := found.Image()
	if err != nil {
		return nil, fmt.Errorf("for linux/%s: %w", arch, err)
	}
	return img.ConfigFile()
}

// mirrored is the reference of the same image at the mirror, and the path below
// which the mirror has its registry.
func (s Source) mirrored(ref name.Reference) (name.Reference, string, bool) {
	host := ref.Context().RegistryStr()
	if host == name.DefaultRegistry {
		host = "docker.io"
	}
	u, err := url.Parse(s.Mirror.URL)
	if s.Mirror.URL == "" || err != nil || !slices.Contains(s.Mirrored, host) {
		return nil, "", false
	}
	var options []name.Option
	if u.Scheme == "http" {
		options = append(options, name.Insecure)
	}
	text := u.Host + "/" + host + "/" + ref.Context().RepositoryStr()
	if _, digest := ref.(name.Digest); digest {
		text += "@" + ref.Identifier()
	} else {
		text += ":" + ref.Identifier()
	}
	out, err := name.ParseReference(text, options...)
	return out, strings.TrimRight(u.Path, "/"), err == nil
}

// transportTrusting is go-containerregistry's own with further certificates.
func transportTrusting(rootCAs []byte) (http.RoundTripper, error) {
	t, ok := remote.DefaultTransport.(*http.Transport)
	if !ok || len(bytes.TrimSpace(rootCAs)) == 0 {
		return remote.DefaultTransport, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(rootCAs) {
		return nil, errors.New("the file of certificates to trust holds none in PEM")
	}
	t = t.Clone()
	t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return t, nil
}

// below puts a path before that of every request.
func below(prefix string, rt http.RoundTripper) http.RoundTripper {
	if prefix == "" {
		return rt
	}
	return prefixed{prefix, rt}
}

type prefixed struct {
	path string
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (p prefixed) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasPrefix(r.URL.Path, "/v2/") {
		r = r.Clone(r.Context())
		r.URL.Path = p.path + r.URL.Path
	}
	return p.next.RoundTrip(r)
}

// absent: the registry says that it has no such image.
func absent(err error) bool {
	var said *transport.Error
	if !errors.As(err, &said) || said.StatusCode != http.StatusNotFound {
		return false
	}
	// A web server that knows nothing of images says 404 too; a registry says why.
	return slices.ContainsFunc(said.Errors, func(d transport.Diagnostic) bool {
		return d.Code == transport.ManifestUnknownErrorCode || d.Code == transport.NameUnknownErrorCode
	})
}
