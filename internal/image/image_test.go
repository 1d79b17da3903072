package image

import (
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/gpuctl/gpuctl/internal/cuda"
	"github.com/gpuctl/gpuctl/internal/source"
)

func quiet() http.Handler { return registry.New(registry.Logger(log.New(io.Discard, "", 0))) }

func hostOf(s *httptest.Server) string {
	_, host, _ := strings.Cut(s.URL, "://")
	return host
}

// with is an image for one architecture whose environment is env.
func with(t *testing.T, arch string, env ...string) v1.Image {
	t.Helper()
	img, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: "linux", Architecture: arch, Config: v1.Config{Env: env}, RootFS: v1.RootFS{Type: "layers"}})
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func push(t *testing.T, s *httptest.Server, path string, images ...v1.Image) {
	t.Helper()
	ref, err := name.ParseReference(hostOf(s) + "/" + path)
	if err != nil {
		t.Fatal(err)
	}
	rt := remote.WithTransport(s.Client().Transport)
	if len(images) == 1 {
		err = remote.Write(ref, images[0], rt)
	} else {
		index := v1.ImageIndex(empty.Index)
		for _, img := range images {
			config, configErr := img.ConfigFile()
			if configErr != nil {
				t.Fatal(configErr)
			}
			index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: config.Architecture}}})
		}
		err = remote.WriteIndex(ref, index, rt)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestRead(t *testing.T) {
	server := httptest.NewServer(quiet())
	defer server.Close()
	host := hostOf(server)
	push(t, server, "team/train:1", with(t, "amd64", "CUDA_VERSION=12.4.1"), with(t, "arm64", "CUDA_VERSION=13.0.0"))
	push(t, server, "team/plain:1", with(t, "amd64", "PATH=/bin"))
	for arch, want := range map[string]string{"amd64": "12.4.1", "arm64": "13.0.0"} {
		got, err := Source{}.Read(t.Context(), host+"/team/train:1", arch)
		if err != nil || got.CUDA != want {
			t.Errorf("%s: %+v, %v", arch, got, err)
		}
	}
	if got, err := (Source{}).Read(t.Context(), host+"/team/plain:1", "amd64"); err != nil || got.CUDA != "" {
		t.Errorf("%+v, %v", got, err)
	}
	if err := Check("Not An Image"); err == nil {
		t.Error("blanks and capitals are an image")
	}
}

func TestReadByTheMirror(t *testing.T) {
	mirror := httptest.NewServer(http.StripPrefix("/oci", quiet()))
	defer mirror.Close()
	inner := httptest.NewServer(quiet())
	defer inner.Close()
	push(t, inner, "nvcr.io/nvidia/x:1", with(t, "amd64", "CUDA_VERSION=12.6.0"))
	push(t, inner, "docker.io/library/y:latest", with(t, "amd64", "CUDA_VERSION=12.5.0"))

	s := Source{Mirror: source.Source{URL: inner.URL}, Mirrored: []string{"nvcr.io", "docker.io"}}
	for ref, want := range map[string]string{
		"nvcr.io/nvidia/x:1": "12.6.0", "y": "12.5.0", "docker.io/library/y": "12.5.0",
	} {
		if got, err := s.Read(t.Context(), ref, "amd64"); err != nil || got.CUDA != want {
			t.Errorf("%s: %+v, %v, want %s", ref, got, err, want)
		}
	}
	s.Mirror.URL = mirror.URL + "/oci/"
	pinned, err := name.ParseReference("nvcr.io/nvidia/x@sha256:" + strings.Repeat("0", 64))
	if err != nil {
		t.Fatal(err)
	}
	ref, prefix, ok := s.mirrored(pinned)
	if !ok || prefix != "/oci" || !strings.Contains(ref.String(), "/nvcr.io/nvidia/x@sha256:") {
		t.Errorf("%v %q %v", ref, prefix, ok)
	}
	// The mirror answers, below its path, that it is empty; upstream nobody answers: whether it exists is not known.
	s.Mirrored = []string{"registry.invalid"}
	_, err = s.Read(t.Context(), "registry.invalid/none:1", "amd64")
	var not *ReadError
	if !errors.As(err, &not) || not.Absent || !strings.Contains(err.Error(), "the mirror "+mirror.URL+"/oci/: GET "+mirror.URL+"/oci/v2/registry.invalid/none/manifests/1: NAME_UNKNOWN") {
		t.Errorf("%v", err)
	}
}

// sources.images may ask for a login and have certificates of its own.
func TestReadByAMirrorThatAsksForALogin(t *testing.T) {
	inner := quiet()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "reader" || password != "pass" {
			w.Header().Set("WWW-Authenticate", `Basic realm="mirror"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	ref, err := name.ParseReference(hostOf(server) + "/nvcr.io/nvidia/x:1")
	if err != nil {
		t.Fatal(err)
	}
	login := remote.WithAuth(&authn.Basic{Username: "reader", Password: "pass"})
	if err := remote.Write(ref, with(t, "amd64", "CUDA_VERSION=12.6.0"), login, remote.WithTransport(server.Client().Transport)); err != nil {
		t.Fatal(err)
	}
	s := Source{Mirrored: []string{"nvcr.io"}, Mirror: source.Source{URL: server.URL, Username: "reader", Password: "pass",
		CA: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))}}
	if got, err := s.Read(t.Context(), "nvcr.io/nvidia/x:1", "amd64"); err != nil || got.CUDA != "12.6.0" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestReadTrustsTheGivenAuthority(t *testing.T) {
	server := httptest.NewUnstartedServer(quiet())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	push(t, server, "x:1", with(t, "amd64", "CUDA_VERSION=12.8.1"))
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	// ggcr takes 127.0.0.1 for a plain http registry and tries https first.
	if got, err := (Source{RootCAs: authority}).Read(t.Context(), hostOf(server)+"/x:1", "amd64"); err != nil || got.CUDA != "12.8.1" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := (Source{}).Read(t.Context(), hostOf(server)+"/x:1", "amd64"); err == nil {
		t.Error("an unknown authority is trusted")
	}
	if _, err := (Source{RootCAs: []byte("no PEM")}).Read(t.Context(), hostOf(server)+"/x:1", "amd64"); err == nil || !strings.Contains(err.Error(), "holds none") {
		t.Errorf("%v", err)
	}
}

func TestWhatIsNotReadSaysWhy(t *testing.T) {
	empty := httptest.NewServer(quiet())
	defer empty.Close()
	html := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "<html>log in first</html>")
	}))
	defer html.Close()
	notFound := httptest.NewServer(http.NotFoundHandler())
	defer notFound.Close()
	locked := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer locked.Close()
	for ref, code := range map[string]string{
		hostOf(empty) + "/x:1":    "smoke-image-pull",
		hostOf(html) + "/x:1":     cuda.CodeNotJudged,
		hostOf(notFound) + "/x:1": cuda.CodeNotJudged,
		hostOf(locked) + "/x:1":   cuda.CodeNotJudged,
		"a b":                     cuda.CodeNotJudged,
	} {
		_, err := Source{}.Read(t.Context(), ref, "amd64")
		var not *ReadError
		if !errors.As(err, &not) || not.DiagCode() != code {
			t.Errorf("%s: %v, want %s", ref, err, code)
		}
	}
}
