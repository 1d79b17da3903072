package charts

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/registry"
	"helm.sh/helm/v3/pkg/repo"
)

// maxDownload bounds an index or an archive: NGC's index is a few MiB.
const maxDownload = 64 << 20

// archive is a chart's bytes, verified. Each load gives a fresh chart, because
// Helm changes the one it works with.
type archive struct {
	bytes []byte
	// dir is set instead for an unpacked local chart.
	dir string
}

func (a archive) load() (*chart.Chart, error) {
	if a.dir != "" {
		return loader.LoadDir(a.dir)
	}
	return loader.LoadArchive(bytes.NewReader(a.bytes))
}

// fetch brings a chart: from the cache if its digest is right, else from where
// the chart says. The digest is checked on every way.
func (r *Releaser) fetch(ctx context.Context, c Chart) (archive, error) {
	a, err := r.fetchFrom(ctx, c)
	if err != nil {
		return archive{}, fmt.Errorf("fetching chart %s %s: %w", c.Name, c.Version, err)
	}
	loaded, err := a.load()
	if err != nil {
		return archive{}, fmt.Errorf("loading chart %s %s: %w", c.Name, c.Version, err)
	}
	if m := loaded.Metadata; m.Name != c.Name || (c.Version != "" && m.Version != c.Version) {
		return archive{}, fmt.Errorf("loading chart %s %s: the archive holds %s %s", c.Name, c.Version, m.Name, m.Version)
	}
	return a, nil
}

func (r *Releaser) fetchFrom(ctx context.Context, c Chart) (archive, error) {
	switch {
	case strings.HasPrefix(c.Repository, "http://"), strings.HasPrefix(c.Repository, "https://"), strings.HasPrefix(c.Repository, "oci://"):
	default:
		return localArchive(c)
	}
	if data, ok := r.cached(c.SHA256); ok {
		return archive{bytes: data}, nil
	}
	var data []byte
	var err error
	if strings.HasPrefix(c.Repository, "oci://") {
		data, err = r.pullOCI(c)
	} else {
		data, err = r.download(ctx, c)
	}
	if err != nil {
		return archive{}, err
	}
	if err := checkDigest(data, c.SHA256); err != nil {
		return archive{}, err
	}
	r.keep(data)
	return archive{bytes: data}, nil
}

// localArchive reads a chart from a directory, an archive, or a directory of archives.
func localArchive(c Chart) (archive, error) {
	at := c.Repository
	info, err := os.Stat(at)
	if err != nil {
		return archive{}, err
	}
	if info.IsDir() {
		if _, err := os.Stat(filepath.Join(at, "Chart.yaml")); err == nil {
			if c.SHA256 != "" {
				return archive{}, fmt.Errorf("a digest is wanted, and %s is unpacked: give the archive", at)
			}
			return archive{dir: at}, nil
		}
		at = filepath.Join(at, c.Name+"-"+c.Version+".tgz")
	}
	data, err := os.ReadFile(at)
	if err != nil {
		return archive{}, err
	}
	return archive{bytes: data}, checkDigest(data, c.SHA256)
}

// download takes the archive that the repository's index names. The index's own
// digest is checked too, when it has one.
func (r *Releaser) download(ctx context.Context, c Chart) ([]byte, error) {
	base := strings.TrimSuffix(c.Repository, "/")
	text, err := r.get(ctx, base+"/index.yaml")
	if err != nil {
		return nil, err
	}
	index, err := parseIndex(text)
	if err != nil {
		return nil, fmt.Errorf("reading %s/index.yaml: %w", base, err)
	}
	entry, err := index.Get(c.Name, c.Version)
	if err != nil {
		return nil, fmt.Errorf("%s/index.yaml: %w", base, err)
	}
	if data, ok := r.cached(entry.Digest); ok && c.SHA256 == "" {
		return data, nil
	}
	if len(entry.URLs) == 0 {
		return nil, fmt.Errorf("%s/index.yaml: %s %s has no URL", base, c.Name, c.Version)
	}
	url, err := repo.ResolveReferenceURL(base+"/", entry.URLs[0])
	if err != nil {
		return nil, err
	}
	data, err := r.get(ctx, url)
	if err != nil {
		return nil, err
	}
	return data, checkDigest(data, strings.TrimPrefix(entry.Digest, "sha256:"))
}

// parseIndex reads an index through a file, the only way Helm offers.
func parseIndex(text []byte) (*repo.IndexFile, error) {
	f, err := os.CreateTemp("", "gpuctl-index-*.yaml")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(text)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return nil, err
	}
	return repo.LoadIndexFile(f.Name())
}

func (r *Releaser) pullOCI(c Chart) ([]byte, error) {
	options := []registry.ClientOption{registry.ClientOptHTTPClient(r.http), registry.ClientOptWriter(io.Discard)}
	base := strings.TrimPrefix(strings.TrimSuffix(c.Repository, "/"), "oci://")
	if host, _, _ := strings.Cut(base, "/"); r.login.Username != "" && host == r.login.Host() {
		// Registries often give out a token at another place for it.
		options = append(options, registry.ClientOptBasicAuth(r.login.Username, r.login.Password))
	}
	client, err := registry.NewClient(options...)
	if err != nil {
		return nil, err
	}
	ref := base + "/" + c.Name + ":" + strings.ReplaceAll(c.Version, "+", "_")
	result, err := client.Pull(ref)
	if err != nil {
		return nil, err
	}
	return result.Chart.Data, nil
}

func (r *Releaser) get(ctx context.Context, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := r.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("getting %s: %s", url, resp.Status)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxDownload+1))
	if err != nil {
		return nil, fmt.Errorf("getting %s: %w", url, err)
	}
	if len(data) > maxDownload {
		return nil, fmt.Errorf("getting %s: more than %d bytes", url, maxDownload)
	}
	if webPage(data) {
		return nil, fmt.Errorf("getting %s: the answer is a web page (it has <html>)", url)
	}
	return data, nil
}

// webPage: a portal or a login page answered instead of a repository.
func webPage(data []byte) bool {
	head := bytes.ToLower(data[:min(len(data), 512)])
	return bytes.Contains(head, []byte("<html")) || bytes.Contains(head, []byte("<!doctype html"))
}

func checkDigest(data []byte, want string) error {
	if want == "" {
		return nil
	}
	if got := digest(data); got != want {
		return fmt.Errorf("digest is sha256:%s, wanted sha256:%s", got, want)
	}
	return nil
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// cached returns an archive of the cache whose bytes still have the digest.
func (r *Releaser) cached(sum string) ([]byte, bool) {
	sum = strings.TrimPrefix(sum, "sha256:")
	if r.cache == "" || len(sum) != sha256.Size*2 || strings.ContainsAny(sum, `/\.`) {
		return nil, false
	}
	data, err := os.ReadFile(filepath.Join(r.cache, sum+".tgz"))
	if err != nil || checkDigest(data, sum) != nil {
		return nil, false
	}
	return data, true
}

// keep puts an archive into the cache. A cache that cannot be written costs time, not the run.
func (r *Releaser) keep(data []byte) {
	if r.cache == "" || os.MkdirAll(r.cache, 0o700) != nil {
		return
	}
	f, err := os.CreateTemp(r.cache, ".new-*")
	if err != nil {
		return
	}
	_, err = f.Write(data)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(r.cache, digest(data)+".tgz"))
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
}
