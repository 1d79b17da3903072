package image

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/gpuctl/gpuctl/internal/source"
)

// layered is an image with one layer of its own.
func layered(t *testing.T, arch, content string) v1.Image {
	t.Helper()
	img, err := mutate.AppendLayers(with(t, arch), static.NewLayer([]byte(content), types.OCILayer))
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// members reads a tar archive.
func members(t *testing.T, data []byte) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	r := tar.NewReader(bytes.NewReader(data))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, twice := out[h.Name]; twice {
			t.Errorf("%s is there twice", h.Name)
		}
		if out[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

// An image comes from the mirror under the names by which nodes ask upstream,
// with its index as it was, one architecture's layers, and what is shared once.
func TestPullAndLayout(t *testing.T) {
	mirror := httptest.NewServer(quiet())
	defer mirror.Close()
	push(t, mirror, "nvcr.io/nvidia/cuda-sample:one", layered(t, "amd64", "for amd64"), layered(t, "arm64", "for arm64"))
	push(t, mirror, "docker.io/library/busybox:1", layered(t, "amd64", "for amd64"))
	from := Source{Mirror: source.Source{URL: mirror.URL}, Mirrored: []string{"nvcr.io", "docker.io"}}
	one, err := from.Pull(t.Context(), "nvcr.io/nvidia/cuda-sample:one", "amd64")
	if err != nil {
		t.Fatal(err)
	}
	byDigest, err := from.Pull(t.Context(), "nvcr.io/nvidia/cuda-sample@sha256:"+one.SHA256, "amd64")
	if err != nil || len(byDigest.Names) != 1 || byDigest.Names[0] != "nvcr.io/nvidia/cuda-sample@sha256:"+one.SHA256 {
		t.Errorf("by digest: %v, %v", byDigest.Names, err)
	}
	busybox, err := from.Pull(t.Context(), "busybox:1", "amd64")
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"docker.io/library/busybox@sha256:" + busybox.SHA256, "docker.io/library/busybox:1"}; !slices.Equal(busybox.Names, want) {
		t.Errorf("names %v, want %v", busybox.Names, want)
	}
	blobs := map[string]Blob{}
	for _, b := range slices.Concat(one.Blobs, busybox.Blobs) {
		blobs[b.SHA256] = b
	}
	pack := func() []byte {
		var out bytes.Buffer
		err := Layout(&out, []Pulled{one, busybox}, func(sum string, w io.Writer) error {
			r, err := blobs[sum].Open()
			if err != nil {
				return err
			}
			defer r.Close()
			_, err = io.Copy(w, r)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	first := pack()
	if !bytes.Equal(first, pack()) {
		t.Error("the same images make other bytes")
	}
	all := members(t, first)
	layers := 0
	for _, content := range all {
		if strings.HasPrefix(string(content), "for ") {
			layers++
		}
		if string(content) == "for arm64" {
			t.Error("another architecture's layer is in it")
		}
	}
	if layers != 1 {
		t.Errorf("%d layers, and both images have the same one", layers)
	}
	var index v1.IndexManifest
	if err := json.Unmarshal(all["index.json"], &index); err != nil || len(index.Manifests) != 4 {
		t.Fatalf("%s: %v", all["index.json"], err)
	}
	for _, m := range index.Manifests {
		if body, there := all["blobs/sha256/"+m.Digest.Hex]; !there || int64(len(body)) != m.Size || m.Annotations["io.containerd.image.name"] == "" {
			t.Errorf("%+v: %d bytes", m, len(body))
		}
	}
}

func TestPullFails(t *testing.T) {
	mirror := httptest.NewServer(quiet())
	defer mirror.Close()
	push(t, mirror, "a/b:one", layered(t, "arm64", "x"), layered(t, "ppc64le", "y"))
	for _, ref := range []string{hostOf(mirror) + "/a/b:one", hostOf(mirror) + "/a/b:none", "Not An Image"} {
		var failed *ReadError
		if got, err := (Source{}).Pull(t.Context(), ref, "amd64"); !errors.As(err, &failed) {
			t.Errorf("%s: %v, %v", ref, got.Names, err)
		}
	}
}
