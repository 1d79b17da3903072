package k3s

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/internal/source"
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

// A source that asks for a login and has an authority of its own is told what it
// wants, and no argument list shows it.
func TestDownloadLogsIn(t *testing.T) {
	const binary = "k3s binary"
	sum := sha256.Sum256([]byte(binary))
	mirror := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "bob" || password != "hush" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(binary))
	}))
	defer mirror.Close()
	s := source.Source{
		URL: mirror.URL, Username: "bob", Password: "hush",
		CA: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: mirror.Certificate().Raw})),
	}
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Fatal(err)
	}
	b := newBox(t)
	b.command("curl", `echo "$*" >>"$BOX/argv"; exec `+curl+` "$@"`)
	b.env = []string{"TMPDIR=" + b.dir}
	for k, v := range s.Env() {
		b.env = append(b.env, k+"="+v)
	}
	args := []string{b.path("opt/.k3s"), mirror.URL + "/k3s", hex.EncodeToString(sum[:]), "", "k3s", "network"}
	if out, code := b.run(downloadScript, args...); code != 0 || b.read("opt/.k3s") != binary {
		t.Fatalf("exit code %d: %s", code, out)
	}
	for _, secret := range s.Secrets() {
		if strings.Contains(b.read("argv"), secret) {
			t.Errorf("an argument list holds %s:\n%s", secret, b.read("argv"))
		}
	}
	if left, err := exec.Command("find", b.dir, "-name", "curl", "-path", "*tmp.*").Output(); err != nil || len(left) > 0 {
		t.Errorf("the login stays on the machine: %s, %v", left, err)
	}
	b.env = b.env[:1] // without a login
	args[0] = b.path("opt/.other")
	if out, code := b.run(downloadScript, args...); code != 42 {
		t.Errorf("without a login: exit code %d: %s", code, out)
	}
}
