package charts

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/registry"

	"github.com/gpuctl/gpuctl/internal/source"
)

// serveOCI serves an archive as Helm pushes it to a registry: a manifest of two
// blobs (helm.sh, topics/registries), over TLS.
func serveOCI(t *testing.T, name, tag string, archive []byte) *httptest.Server {
	t.Helper()
	config := []byte(fmt.Sprintf(`{"name":%q,"version":%q,"apiVersion":"v2"}`, name, tag))
	blobs := map[string][]byte{}
	descriptor := func(mediaType string, data []byte) map[string]any {
		sum := sha256.Sum256(data)
		blobs["sha256:"+hex.EncodeToString(sum[:])] = data
		return map[string]any{"mediaType": mediaType, "digest": "sha256:" + hex.EncodeToString(sum[:]), "size": len(data)}
	}
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": descriptor(registry.ConfigMediaType, config),
		"layers": []any{descriptor(registry.ChartLayerMediaType, archive)},
	})
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(manifest)
	digest := "sha256:" + hex.EncodeToString(sum[:])
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		base := "/v2/charts/" + name
		switch {
		case r.URL.Path == base+"/manifests/"+tag, r.URL.Path == base+"/manifests/"+digest:
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
			w.Header().Set("Docker-Content-Digest", digest)
			_, _ = w.Write(manifest)
		case blobs[strings.TrimPrefix(r.URL.Path, base+"/blobs/")] != nil:
			_, _ = w.Write(blobs[strings.TrimPrefix(r.URL.Path, base+"/blobs/")])
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func TestFetchFromARegistry(t *testing.T) {
	repo := serveTiny(t)
	c := newCluster(t)
	first, err := c.fetch(background(t), tinyRelease(repo).Chart)
	if err != nil {
		t.Fatal(err)
	}
	s := serveOCI(t, "tiny", "1.0.0", first.bytes)
	c.http = s.Client()
	c.cache = t.TempDir()
	ch := Chart{Name: "tiny", Version: "1.0.0", Repository: "oci://" + strings.TrimPrefix(s.URL, "https://") + "/charts", SHA256: repo.sum}
	got, err := c.fetch(background(t), ch)
	if err != nil || digest(got.bytes) != repo.sum {
		t.Fatalf("pulled %d bytes, %v", len(got.bytes), err)
	}
	s.Close()
	if _, err := c.fetch(background(t), ch); err != nil {
		t.Errorf("from the cache: %v", err)
	}
	ch.SHA256 = strings.Repeat("0", 64)
	if _, err := c.fetch(background(t), ch); err == nil {
		t.Error("a registry that is gone served another digest")
	}
}

// TestFetchLogsInAtARegistry: registries hand nothing to strangers.
func TestFetchLogsInAtARegistry(t *testing.T) {
	repo := serveTiny(t)
	c := newCluster(t)
	first, err := c.fetch(background(t), tinyRelease(repo).Chart)
	if err != nil {
		t.Fatal(err)
	}
	open := serveOCI(t, "tiny", "1.0.0", first.bytes)
	inner := open.Config.Handler
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "bob" || password != "hush" {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	c.http, c.cache = s.Client(), t.TempDir()
	ch := Chart{Name: "tiny", Version: "1.0.0", Repository: "oci://" + strings.TrimPrefix(s.URL, "https://") + "/charts", SHA256: repo.sum}
	if _, err := c.fetch(background(t), ch); err == nil {
		t.Fatal("a stranger was let in")
	}
	c.login = source.Source{URL: ch.Repository, Username: "bob", Password: "hush"}
	if got, err := c.fetch(background(t), ch); err != nil || digest(got.bytes) != repo.sum {
		t.Errorf("pulled %d bytes, %v", len(got.bytes), err)
	}
}

func TestAnArchiveOfARegistryIsCheckedToo(t *testing.T) {
	repo := serveTiny(t)
	c := newCluster(t)
	first, err := c.fetch(background(t), tinyRelease(repo).Chart)
	if err != nil {
		t.Fatal(err)
	}
	s := serveOCI(t, "tiny", "1.0.0", first.bytes)
	c.http, c.cache = s.Client(), t.TempDir()
	ch := Chart{Name: "tiny", Version: "1.0.0", Repository: "oci://" + strings.TrimPrefix(s.URL, "https://") + "/charts", SHA256: strings.Repeat("0", 64)}
	if _, err := c.fetch(background(t), ch); err == nil || !strings.Contains(err.Error(), "digest is sha256:"+repo.sum) {
		t.Errorf("another digest: %v", err)
	}
}
