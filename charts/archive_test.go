package charts

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/internal/diag"
)

func TestFetchChecksTheDigestEachTime(t *testing.T) {
	r := serveTiny(t)
	c := newCluster(t)
	ch := tinyRelease(r).Chart
	if _, err := c.fetch(background(t), ch); err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(c.cache, r.sum+".tgz")
	if err := os.WriteFile(kept, []byte("rotten"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.fetch(background(t), ch); err != nil || r.archives != 2 {
		t.Errorf("a rotten cache: %v, fetched %d times, want 2", err, r.archives)
	}
	ch.SHA256 = strings.Repeat("0", 64)
	if _, err := c.fetch(background(t), ch); err == nil || !strings.Contains(err.Error(), "digest is sha256:"+r.sum) {
		t.Errorf("a chart of another digest: %v", err)
	}
}

func TestFetchByIndexDigest(t *testing.T) {
	r := serveTiny(t)
	c := newCluster(t)
	ch := tinyRelease(r).Chart
	ch.SHA256 = ""
	for range 2 {
		if _, err := c.fetch(background(t), ch); err != nil {
			t.Fatal(err)
		}
	}
	if r.archives != 1 {
		t.Errorf("fetched %d times; the index names the digest that the cache has", r.archives)
	}
}

func TestFetchFailures(t *testing.T) {
	r := serveTiny(t)
	portal := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "<!DOCTYPE html><html><body>Log in first</body></html>")
	}))
	t.Cleanup(portal.Close)
	c := newCluster(t)
	ch := tinyRelease(r).Chart
	ch.SHA256 = ""
	for name, tt := range map[string]struct {
		change func(*Chart)
		want   string
	}{
		"no such version": {func(c *Chart) { c.Version = "9.9.9" }, "no chart version found"},
		"no such chart":   {func(c *Chart) { c.Name = "huge" }, "no chart name found"},
		"no repository":   {func(c *Chart) { c.Repository += "/nowhere" }, "404"},
		"a web page":      {func(c *Chart) { c.Repository = portal.URL }, "is a web page (it has <html>)"},
		"another chart":   {func(c *Chart) { c.Repository, c.Version = "testdata/tiny", "2.0.0" }, "holds tiny 1.0.0"},
		"unpacked with a digest": {func(c *Chart) {
			c.Repository, c.SHA256 = "testdata/tiny", strings.Repeat("0", 64)
		}, "is unpacked"},
	} {
		t.Run(name, func(t *testing.T) {
			bad := ch
			tt.change(&bad)
			_, err := c.fetch(background(t), bad)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want ...%s...", err, tt.want)
			}
			want := map[string]diag.Code{"a web page": "mirror-answers-html", "no such version": "chart-unavailable", "no such chart": "chart-unavailable", "no repository": "chart-unavailable"}[name]
			if p, _ := diag.Explain(err); want != "" && p.Code != want {
				t.Errorf("%v is explained by %s, want %s", err, p.Code, want)
			}
		})
	}
	local := Chart{Name: "tiny", Version: "1.0.0", Repository: "testdata/tiny"}
	if _, err := c.fetch(background(t), local); err != nil {
		t.Errorf("a local directory: %v", err)
	}
}
