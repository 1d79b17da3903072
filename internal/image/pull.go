package image

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Pulled is an image as its registry has it, for one architecture: manifests
// stay as they are, so that a digest names the same image afterwards.
type Pulled struct {
	// Names are those by which nodes ask for it: by tag, where it was named by one, and by digest.
	Names []string
	// MediaType, SHA256 and Size are those of the manifest, or of the index that holds it.
	MediaType, SHA256 string
	Size              int64
	Blobs             []Blob
	// License is what the image says of itself, empty where it says nothing.
	License string
}

// Blob is one piece of an image.
type Blob struct {
	SHA256 string
	Size   int64
	// Open reads it, from the registry where it is large.
	Open func() (io.ReadCloser, error)
}

// Pull asks for an image's manifests; its layers are fetched when their Open is
// called, until ctx ends. The error is a *ReadError.
func (s Source) Pull(ctx context.Context, text, arch string) (Pulled, error) {
	upstream, err := name.ParseReference(text)
	if err != nil {
		return Pulled{}, &ReadError{text, false, err}
	}
	var failed error
	if mirrored, prefix, ok := s.mirrored(upstream); ok {
		rt, login, err := s.mirrorAccess(prefix)
		if err == nil {
			var p Pulled
			if p, err = pull(ctx, mirrored, arch, rt, login); err == nil {
				p.Names = names(upstream, p.SHA256)
				return p, nil
			}
		}
		failed = fmt.Errorf("the mirror %s: %w", s.Mirror.URL, err)
	}
	rt, err := transportTrusting(s.RootCAs)
	if err != nil {
		return Pulled{}, &ReadError{text, false, err}
	}
	p, err := pull(ctx, upstream, arch, rt, remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err != nil {
		return Pulled{}, &ReadError{text, absent(err), errors.Join(failed, err)}
	}
	p.Names = names(upstream, p.SHA256)
	return p, nil
}

func pull(ctx context.Context, ref name.Reference, arch string, rt http.RoundTripper, login remote.Option) (Pulled, error) {
	platform := v1.Platform{OS: "linux", Architecture: arch}
	found, err := remote.Get(ref, remote.WithContext(ctx), remote.WithTransport(rt), remote.WithPlatform(platform), login)
	if err != nil {
		return Pulled{}, err
	}
	p := Pulled{MediaType: string(found.MediaType), SHA256: found.Digest.Hex, Size: int64(len(found.Manifest))}
	p.Blobs = append(p.Blobs, inMemory(found.Manifest))
	img, err := found.Image()
	if err != nil {
		return Pulled{}, fmt.Errorf("for linux/%s: %w", arch, err)
	}
	if found.MediaType.IsIndex() {
		raw, err := img.RawManifest()
		if err != nil {
			return Pulled{}, err
		}
		p.Blobs = append(p.Blobs, inMemory(raw))
	}
	config, err := img.RawConfigFile()
	if err != nil {
		return Pulled{}, err
	}
	p.Blobs = append(p.Blobs, inMemory(config))
	if f, err := v1.ParseConfigFile(bytes.NewReader(config)); err == nil {
		p.License = f.Config.Labels["org.opencontainers.image.licenses"]
	}
	layers, err := img.Layers()
	if err != nil {
		return Pulled{}, err
	}
	for _, l := range layers {
		if kind, err := l.MediaType(); err == nil && !kind.IsDistributable() && kind != types.DockerLayer {
			return Pulled{}, fmt.Errorf("layer of type %s must not be handed on", kind)
		}
		digest, err := l.Digest()
		if err != nil {
			return Pulled{}, err
		}
		size, err := l.Size()
		if err != nil {
			return Pulled{}, err
		}
		p.Blobs = append(p.Blobs, Blob{SHA256: digest.Hex, Size: size, Open: l.Compressed})
	}
	return p, nil
}

func inMemory(data []byte) Blob {
	sum := sha256.Sum256(data)
	return Blob{
		SHA256: hex.EncodeToString(sum[:]), Size: int64(len(data)),
		Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil },
	}
}

// names are those of containerd, which says docker.io where the library has an older name.
func names(ref name.Reference, digest string) []string {
	host := ref.Context().RegistryStr()
	if host == name.DefaultRegistry {
		host = "docker.io"
	}
	base := host + "/" + ref.Context().RepositoryStr()
	out := []string{base + "@sha256:" + digest}
	if tag, ok := ref.(name.Tag); ok {
		out = append(out, base+":"+tag.TagStr())
	}
	return out
}
