package k3s

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A run that was killed leaves its download behind, and the next run begins its own.
func TestDownloadsAtOnceAreOne(t *testing.T) {
	binary := strings.Repeat("k3s binary ", 1000)
	sum := sha256.Sum256([]byte(binary))
	var fetched atomic.Int32
	mirror := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fetched.Add(1)
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(binary))
	}))
	defer mirror.Close()
	b := newBox(t)
	var runs sync.WaitGroup
	for range 4 {
		runs.Go(func() {
			if out, code := b.run(downloadScript, b.path("opt/.k3s"), mirror.URL+"/k3s", hex.EncodeToString(sum[:]), "", "k3s", "network"); code != 0 {
				t.Errorf("exit code %d: %s", code, out)
			}
		})
	}
	runs.Wait()
	if n := fetched.Load(); n != 1 || b.read("opt/.k3s") != binary {
		t.Errorf("fetched %d times", n)
	}
}
