package spread

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
)

// Nothing but a file of the folder is given, and that only to who knows the secret.
func TestAnswers(t *testing.T) {
	m := &machine{t: t, dir: t.TempDir()}
	f, content := file(5000)
	in, out := io.Pipe()
	ready := make(chan struct{})
	go func() {
		_, _ = m.Run(context.Background(), remote.Cmd{
			Script: serveScript, Args: []string{"127.0.0.9", "17998", m.dir}, Env: map[string]string{"GPUCTL_SECRET": "hush"},
			Stdin: in, Stdout: &firstWord{word: "ready\n", then: func() { close(ready) }},
		})
	}()
	defer out.Close()
	if err := os.WriteFile(filepath.Join(m.dir, f.SHA256), content, 0o600); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ready:
	case <-time.After(10 * time.Second):
		t.Fatal("nobody listens")
	}
	for _, c := range []struct {
		method, path, secret, span string
		status, length             int
	}{
		{"GET", "/" + f.SHA256, "Bearer hush", "", 200, 5000},
		{"GET", "/" + f.SHA256, "Bearer hush", "bytes=4000-", 206, 1000},
		{"GET", "/" + f.SHA256, "Bearer hush", "bytes=5000-", 416, 0},
		{"GET", "/" + f.SHA256, "Bearer hush", "bytes=$(id)-", 416, 0},
		{"GET", "/" + f.SHA256, "Bearer no", "", 401, 0},
		{"GET", "/" + f.SHA256, "", "", 401, 0},
		{"POST", "/" + f.SHA256, "Bearer hush", "", 405, 0},
		{"GET", "/secret", "Bearer hush", "", 404, 0},
		{"GET", "/../../../etc/passwd", "Bearer hush", "", 404, 0},
		{"GET", "/" + strings.Repeat("0", 64), "Bearer hush", "", 404, 0},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, "http://127.0.0.9:17998", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.URL.Opaque = c.path
		req.Header.Set("Authorization", c.secret)
		if c.span != "" {
			req.Header.Set("Range", c.span)
		}
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Errorf("%s %s: %v", c.method, c.path, err)
			continue
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != c.status || len(body) != c.length {
			t.Errorf("%s %s %q: %s, %d bytes, %v; want %d, %d", c.method, c.path, c.span, resp.Status, len(body), err, c.status, c.length)
		}
	}
}
