package bundle

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/sethvargo/go-retry"
)

// Parts keeps what was fetched for a bundle until it is made, by checksum, so
// that a run that was cut off goes on instead of beginning again.
type Parts struct {
	dir  string
	told func(int64) // may be nil
}

// NewParts keeps parts in a directory, which is made. told is told of bytes as they come.
func NewParts(dir string, told func(int64)) (*Parts, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // public files, as in any download folder
		return nil, fmt.Errorf("keeping parts: %w", err)
	}
	return &Parts{dir, told}, nil
}

// Remove removes all of them.
func (p *Parts) Remove() error { return os.RemoveAll(p.dir) }

func (p *Parts) path(sum string) string { return filepath.Join(p.dir, sum) }

// Has says whether a part is there and whole: only whole ones have their name.
func (p *Parts) Has(sum string, size int64) bool {
	info, err := os.Stat(p.path(sum))
	return err == nil && (size == 0 || info.Size() == size)
}

// Copy writes a part to w.
func (p *Parts) Copy(sum string) func(io.Writer) error {
	return func(w io.Writer) error {
		f, err := os.Open(p.path(sum))
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(w, f)
		return err
	}
}

// Size is that of a part that is there.
func (p *Parts) Size(sum string) (int64, error) {
	info, err := os.Stat(p.path(sum))
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Put keeps a stream whose checksum is known.
func (p *Parts) Put(sum string, r io.Reader) error {
	f, err := os.Create(p.path(sum) + ".part")
	if err != nil {
		return err
	}
	return p.take(f, sum, r)
}

// take appends a stream to a part and gives it its name when it is whole and right.
func (p *Parts) take(f *os.File, sum string, r io.Reader) error {
	_, err := io.Copy(f, &toldReader{r, p.told})
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	got, err := fileSum(f.Name())
	if err != nil {
		return err
	}
	if got != sum {
		return errors.Join(fmt.Errorf("%w: got %s, want %s", errSum, got, sum), os.Remove(f.Name()))
	}
	return os.Rename(f.Name(), p.path(sum))
}

var errSum = errors.New("its SHA-256 differs")

// Fetch downloads a URL whose checksum is known, from where an earlier try
// ended. A line that breaks is tried again a few times.
func (p *Parts) Fetch(ctx context.Context, client *http.Client, url, sum string) error {
	if p.Has(sum, 0) {
		return nil
	}
	fresh := false
	again := retry.WithMaxRetries(4, retry.NewExponential(500*time.Millisecond))
	err := retry.Do(ctx, again, func(ctx context.Context) error {
		err := p.fetch(ctx, client, url, sum)
		switch {
		case err == nil || ctx.Err() != nil:
			return err
		case errors.Is(err, errSum) && fresh:
			return err // whole twice, and wrong twice
		case errors.Is(err, errSum):
			fresh = true
		case errors.Is(err, errStatus):
			return err
		}
		return retry.RetryableError(err)
	})
	if err != nil {
		return fmt.Errorf("fetching %s: %w", url, err)
	}
	return nil
}

var errStatus = errors.New("the answer is")

func (p *Parts) fetch(ctx context.Context, client *http.Client, url, sum string) error {
	f, err := os.OpenFile(p.path(sum)+".part", os.O_CREATE|os.O_WRONLY, 0o644) //nolint:gosec // public, as above
	if err != nil {
		return err
	}
	at, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	if at > 0 {
		req.Header.Set("Range", "bytes="+strconv.FormatInt(at, 10)+"-")
	}
	resp, err := client.Do(req)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusPartialContent:
	case http.StatusOK, http.StatusRequestedRangeNotSatisfiable:
		// No ranges there, or the part is as long as the whole: begin again unless it is right.
		if resp.StatusCode != http.StatusOK {
			return p.take(f, sum, http.NoBody)
		}
		if err := f.Truncate(0); err != nil {
			return errors.Join(err, f.Close())
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return errors.Join(err, f.Close())
		}
	default:
		return errors.Join(fmt.Errorf("%w %s", errStatus, resp.Status), f.Close())
	}
	return p.take(f, sum, resp.Body)
}

type toldReader struct {
	r    io.Reader
	told func(int64)
}

func (t *toldReader) Read(b []byte) (int, error) {
	n, err := t.r.Read(b)
	if t.told != nil {
		t.told(int64(n))
	}
	return n, err
}

func fileSum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
