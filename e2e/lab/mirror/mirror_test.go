package mirror

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

func serve(t *testing.T, c Config) string {
	t.Helper()
	handler, err := newHandler(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func get(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s, %v", url, resp.Status, err)
	}
	return string(body)
}

func TestImagesSurviveARestart(t *testing.T) {
	c := Config{Dir: t.TempDir(), Blobs: t.TempDir()}
	first := serve(t, c)
	index, err := random.Index(1024, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	want, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(first+"/nvcr.io/nvidia/x:1", name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteIndex(ref, index); err != nil {
		t.Fatal(err)
	}
	again, err := name.ParseReference(serve(t, c)+"/nvcr.io/nvidia/x:1", name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	found, err := remote.Index(again)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := found.Digest(); err != nil || got != want {
		t.Errorf("after a restart the index is %s, %v; want %s", got, err, want)
	}
	manifest, err := found.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	image, err := found.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	content, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, content); err != nil {
		t.Errorf("reading a layer after a restart: %v", err)
	}
}

func TestK3sReleaseAndRequestLog(t *testing.T) {
	c := Config{Dir: t.TempDir(), Blobs: t.TempDir()}
	binary := filepath.Join(t.TempDir(), "k3s")
	if err := os.WriteFile(binary, []byte("synthetic"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := WriteK3s(filepath.Join(c.Dir, "k3s"), "v1.34.4+k3s1", binary, ""); err != nil {
		t.Fatal(err)
	}
	address := serve(t, c)
	if got := get(t, "http://"+address+"/k3s/v1.34.4%2Bk3s1/k3s"); got != "synthetic" {
		t.Errorf("k3s is %q", got)
	}
	want := fmt.Sprintf("%x  k3s\n", sha256.Sum256([]byte("synthetic")))
	if got := get(t, "http://"+address+"/k3s/v1.34.4%2Bk3s1/sha256sum-amd64.txt"); got != want {
		t.Errorf("checksums are %q, want %q", got, want)
	}
	requests, next, err := Requests(c.Dir, 0)
	if err != nil || len(requests) != 2 {
		t.Fatalf("log holds %v, %v", requests, err)
	}
	if r := requests[0]; r.Path != "/k3s/v1.34.4+k3s1/k3s" || r.Bytes != int64(len("synthetic")) || r.Status != 200 || r.From != "127.0.0.1" {
		t.Errorf("first request is logged as %+v", r)
	}
	if more, _, err := Requests(c.Dir, next); err != nil || len(more) != 0 {
		t.Errorf("after the end there are %v, %v", more, err)
	}
}

func TestAptRepositoryIsSigned(t *testing.T) {
	dir := t.TempDir()
	deb := filepath.Join(dir, "x_1_amd64.deb")
	control := "Package: x\nVersion: 1\nArchitecture: amd64\nDescription: synthetic\n"
	if err := os.WriteFile(deb, ar("debian-binary", "2.0\n", "control.tar.gz", tarball(t, "./control", control), "data.tar.gz", "odd"), 0o644); err != nil {
		t.Fatal(err)
	}
	key, err := SigningKey(filepath.Join(dir, "key"))
	if err != nil {
		t.Fatal(err)
	}
	if key, err = SigningKey(filepath.Join(dir, "key")); err != nil { // from the file this time
		t.Fatal(err)
	}
	if err := WriteApt(filepath.Join(dir, "apt"), []string{deb}, key); err != nil {
		t.Fatal(err)
	}
	public, err := os.Open(filepath.Join(dir, "apt/gpgkey"))
	if err != nil {
		t.Fatal(err)
	}
	defer public.Close()
	ring, err := openpgp.ReadArmoredKeyRing(public)
	if err != nil {
		t.Fatal(err)
	}
	flat := filepath.Join(dir, "apt/stable/deb/amd64")
	signed, err := os.ReadFile(filepath.Join(flat, "InRelease"))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := clearsign.Decode(signed)
	if block == nil {
		t.Fatalf("InRelease is not signed: %s", signed)
	}
	if _, err := block.VerifySignature(ring, nil); err != nil {
		t.Errorf("signature: %v", err)
	}
	index, err := os.ReadFile(filepath.Join(flat, "Packages"))
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf(" %x %d Packages", sha256.Sum256(index), len(index)); !strings.Contains(string(block.Plaintext), want) {
		t.Errorf("the release does not name the index:\n%s", block.Plaintext)
	}
	if !strings.HasPrefix(string(index), strings.TrimSpace(control)+"\nFilename: ./x_1_amd64.deb\nSize: ") {
		t.Errorf("index is\n%s", index)
	}
}

func TestChartIndex(t *testing.T) {
	dir := t.TempDir()
	chart := filepath.Join(dir, "gpu-operator-1.tgz")
	packed := tarball(t, "gpu-operator/Chart.yaml", "apiVersion: v2\nname: gpu-operator\nversion: v1\nkubeVersion: '>= 1.16.0-0'\n")
	if err := os.WriteFile(chart, []byte(packed), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := WriteCharts(filepath.Join(dir, "charts"), []string{chart}); err != nil {
		t.Fatal(err)
	}
	index, err := os.ReadFile(filepath.Join(dir, "charts/index.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"  gpu-operator:\n", "digest: " + fmt.Sprintf("%x", sha256.Sum256([]byte(packed))), "- gpu-operator-1.tgz", "version: v1",
	} {
		if !strings.Contains(string(index), want) {
			t.Errorf("index lacks %q:\n%s", want, index)
		}
	}
	if got, err := os.ReadFile(filepath.Join(dir, "charts/gpu-operator-1.tgz")); err != nil || string(got) != packed {
		t.Errorf("the chart is not beside its index: %v", err)
	}
}

func TestBadArchives(t *testing.T) {
	for name, archive := range map[string][]byte{
		"empty":        nil,
		"not ar":       []byte("PK"),
		"size too big": []byte("!<arch>\n" + fmt.Sprintf("%-48s%-10d`\n", "x", 99)),
		"no member":    ar("x", "y"),
	} {
		if got, err := arMember(archive, "control.tar.gz"); err == nil {
			t.Errorf("%s: got %q and no error", name, got)
		}
	}
}

func FuzzArMember(f *testing.F) {
	f.Add(ar("control.tar.gz", "abc"))
	f.Add([]byte("!<arch>\n"))
	f.Fuzz(func(t *testing.T, archive []byte) {
		if got, err := arMember(archive, "control.tar.gz"); err == nil && !bytes.Contains(archive, got) {
			t.Errorf("member %q is not part of the archive", got)
		}
	})
}

// ar packs names and contents, one after the other.
func ar(members ...string) []byte {
	var b bytes.Buffer
	b.WriteString("!<arch>\n")
	for i := 0; i < len(members); i += 2 {
		fmt.Fprintf(&b, "%-16s%-12d%-6d%-6d%-8s%-10d`\n%s", members[i], 0, 0, 0, "100644", len(members[i+1]), members[i+1])
		if len(members[i+1])%2 == 1 {
			b.WriteByte('\n')
		}
	}
	return b.Bytes()
}

func tarball(t *testing.T, path, content string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	if err := w.WriteHeader(&tar.Header{Name: path, Mode: 0o644, Size: int64(len(content))}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
