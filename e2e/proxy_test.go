//go:build lab

package e2e_test

import (
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/e2e/lab/machine"
	"github.com/gpuctl/gpuctl/e2e/lab/mirror"
	"github.com/gpuctl/gpuctl/e2e/scene"
)

// httpProxy is a proxy of the lab's host that remembers what it was asked for.
type httpProxy struct {
	url   string
	asked mirror.Asked
}

// startProxy listens beside the mirror, where machines reach it. It wants a login
// whose letters mean something in URLs and to shells.
func startProxy(t *testing.T, base string) *httpProxy {
	t.Helper()
	at, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(at.Hostname(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	p := &httpProxy{url: "http://" + l.Addr().String()}
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.Out.Host = r.In.Host }}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Proxy-Authorization") != "Basic "+base64.StdEncoding.EncodeToString([]byte("proxy@lab:it's secret")) {
			w.Header().Set("Proxy-Authenticate", `Basic realm="lab"`)
			http.Error(w, "log in", http.StatusProxyAuthRequired)
			return
		}
		p.asked.Add(r.URL.Path)
		if r.Method == http.MethodConnect {
			tunnelConnect(w, r)
			return
		}
		forward.ServeHTTP(w, r)
	})}
	go func() { _ = server.Serve(l) }() // ends with Close
	t.Cleanup(func() { _ = server.Close() })
	return p
}

func tunnelConnect(w http.ResponseWriter, r *http.Request) {
	far, err := net.Dial("tcp", r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	near, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = far.Close()
		return
	}
	_, _ = io.WriteString(near, "HTTP/1.1 200 OK\r\n\r\n")
	go func() { _, _ = io.Copy(far, near); _ = far.Close() }()
	_, _ = io.Copy(near, far)
	_ = near.Close()
}

// TestProxy: a machine whose only way out is the proxy of gpuctl.yaml, which wants
// a login, gets through it what it downloads: k3s, packages, images.
func TestProxy(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "proxy")
	m := s.Machines(machine.Spec{Name: "a", GPU: scene.H100(1)})[0]
	p := startProxy(t, s.Lab.Sources()["k3s"])
	at, err := url.Parse(s.Lab.Sources()["k3s"])
	if err != nil {
		t.Fatal(err)
	}
	s.Exec(m, "iptables -I OUTPUT -p tcp -d "+at.Hostname()+" --dport "+at.Port()+" -j REJECT --reject-with tcp-reset")
	if out, err := s.TryExec(m, "curl -sS --max-time 10 "+at.String()+" 2>&1"); err == nil || !strings.Contains(out, "Failed to connect") {
		t.Fatalf("the mirror is reached without the proxy: %v: %s", err, out)
	}
	s.Write(scene.Cluster{
		Members: []scene.Member{{Machine: m, GPUs: 1}},
		Spec: map[string]any{"proxy": map[string]any{
			"http": p.url, "https": p.url, "username": "proxy@lab", "password": map[string]any{"env": "PROXY_PASSWORD"},
		}},
	})
	s.Env = []string{"PROXY_PASSWORD=it's secret"}
	s.Must(0, "apply")
	proven(t, s, map[string]int{m.Name: 1})
	for what, word := range map[string]string{"k3s": "/k3s", "the key of the packages": "gpgkey", "package lists": "InRelease", "packages": ".deb", "images": "/v2/"} {
		if !p.asked.For(word) {
			t.Errorf("%s did not come through the proxy", what)
		}
	}
	var again applied
	if s.Decode(s.Must(0, "apply", "-o", "json"), &again); again.Changed != 0 {
		t.Errorf("a second apply changes %+v", again.Outcomes)
	}
}
