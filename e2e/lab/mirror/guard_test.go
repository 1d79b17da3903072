package mirror

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

func TestGuardLetsInWhoLogsIn(t *testing.T) {
	c := Config{Dir: t.TempDir(), Blobs: t.TempDir()}
	if err := os.MkdirAll(filepath.Join(c.Dir, "apt"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.Dir, "apt/gpgkey"), []byte("key"), 0o644); err != nil {
		t.Fatal(err)
	}
	g, err := NewGuard("127.0.0.1", serve(t, c), Login{User: "bob", Password: "hush", Token: "t0k"})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(g.CA)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	for name, tt := range map[string]struct {
		login  func(*http.Request)
		status int
	}{
		"nobody":           {func(*http.Request) {}, http.StatusUnauthorized},
		"another password": {func(r *http.Request) { r.SetBasicAuth("bob", "x") }, http.StatusUnauthorized},
		"another token":    {func(r *http.Request) { r.Header.Set("Authorization", "Bearer x") }, http.StatusUnauthorized},
		"bob":              {func(r *http.Request) { r.SetBasicAuth("bob", "hush") }, http.StatusOK},
		"a token":          {func(r *http.Request) { r.Header.Set("Authorization", "Bearer t0k") }, http.StatusOK},
	} {
		r, err := http.NewRequest(http.MethodGet, g.URL+"/apt/gpgkey", nil)
		if err != nil {
			t.Fatal(err)
		}
		tt.login(r)
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != tt.status || err != nil || (string(body) == "key") != (tt.status == http.StatusOK) {
			t.Errorf("%s: %s %q, %v", name, resp.Status, body, err)
		}
	}
	if _, err := http.Get(g.URL); err == nil {
		t.Error("its authority is known to this machine")
	}
	if !g.Served("gpgkey") || g.Served("k3s") {
		t.Error("what was served is not remembered")
	}
}
