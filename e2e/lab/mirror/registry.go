package mirror

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// newRegistry is an OCI registry that survives a restart: blobs lie in the
// directory blobs, which several mirrors may share, manifests in manifests.
func newRegistry(ctx context.Context, blobs, manifests string) (http.Handler, error) {
	for _, dir := range []string{blobs, manifests} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	inner := registry.New(
		registry.WithBlobHandler(disk{BlobHandler: registry.NewDiskBlobHandler(blobs), dir: blobs}),
		registry.Logger(log.New(io.Discard, "", 0)),
	)
	r := keeper{Handler: inner, dir: manifests}
	if err := r.replay(ctx); err != nil {
		return nil, fmt.Errorf("reading kept manifests: %w", err)
	}
	return r, nil
}

// disk is the library's blob store without its habit of hashing a blob each
// time it is asked for its size; the digest was checked when it came in.
type disk struct {
	registry.BlobHandler
	dir string
}

// Stat returns the size of a blob.
func (d disk) Stat(_ context.Context, _ string, h v1.Hash) (int64, error) {
	info, err := os.Stat(filepath.Join(d.dir, h.Algorithm, h.Hex))
	if errors.Is(err, os.ErrNotExist) {
		return 0, registry.ErrNotFound
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Put stores a blob.
func (d disk) Put(ctx context.Context, repo string, h v1.Hash, rc io.ReadCloser) error {
	return d.BlobHandler.(registry.BlobPutHandler).Put(ctx, repo, h, rc)
}

// keeper writes each manifest that the registry accepts to a file, since the
// library holds manifests in memory alone.
type keeper struct {
	http.Handler
	dir string
}

type keptManifest struct {
	Path        string `json:"path"` // of the request, /v2/<name>/manifests/<reference>
	ContentType string `json:"contentType"`
	Body        []byte `json:"body"`
}

func (k keeper) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodPut || !strings.Contains(req.URL.Path, "/manifests/") {
		k.Handler.ServeHTTP(w, req)
		return
	}
	body, err := io.ReadAll(io.LimitReader(req.Body, 8<<20))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	kept := keptManifest{Path: req.URL.Path, ContentType: req.Header.Get("Content-Type"), Body: body}
	answer, err := k.put(req.Context(), kept)
	if err == nil && answer.status == http.StatusCreated {
		err = k.keep(kept)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	maps.Copy(w.Header(), answer.header)
	w.WriteHeader(answer.status)
	_, _ = w.Write(answer.body.Bytes())
}

// answer is a response held in memory.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(status int)      { a.status = status }
func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }

func (k keeper) put(ctx context.Context, m keptManifest) (*answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, (&url.URL{Path: m.Path}).String(), bytes.NewReader(m.Body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", m.ContentType)
	a := &answer{header: http.Header{}, status: http.StatusOK}
	k.Handler.ServeHTTP(a, req)
	return a, nil
}

func (k keeper) keep(m keptManifest) error {
	content, err := json.Marshal(m)
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(m.Path))
	return writeFile(filepath.Join(k.dir, hex.EncodeToString(sum[:])+".json"), content)
}

// replay gives the kept manifests to the registry, images before the indexes
// that name them.
func (k keeper) replay(ctx context.Context) error {
	files, err := filepath.Glob(filepath.Join(k.dir, "*.json"))
	if err != nil {
		return err
	}
	var all []keptManifest
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var m keptManifest
		if err := json.Unmarshal(content, &m); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, m)
	}
	slices.SortStableFunc(all, func(a, b keptManifest) int {
		return order(a) - order(b)
	})
	for _, m := range all {
		a, err := k.put(ctx, m)
		if err != nil {
			return err
		}
		if a.status != http.StatusCreated {
			return fmt.Errorf("%s: %d %s", m.Path, a.status, &a.body)
		}
	}
	return nil
}

func order(m keptManifest) int {
	if types.MediaType(m.ContentType).IsIndex() {
		return 1
	}
	return 0
}
