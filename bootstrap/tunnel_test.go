package bootstrap

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/gpuctl/gpuctl/bootstrap/k3s"
	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/internal/event"
)

// apiHost is a machine on which an API answers, however it is called there.
type apiHost struct {
	remote.Host
	api    string
	dials  atomic.Int32
	closed error
}

func (h *apiHost) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	h.dials.Add(1)
	if h.closed != nil {
		return nil, h.closed
	}
	if address != "127.0.0.1:6443" {
		return nil, fmt.Errorf("dialled %s", address)
	}
	return (&net.Dialer{}).DialContext(ctx, network, h.api)
}

func tunnelTo(t *testing.T, h *apiHost, ca string) *Engine {
	t.Helper()
	w := clusterOf(t, "server-1")
	e := &Engine{want: w, fleet: newFleet(w.machines, nil, nil), settings: Settings{Sink: event.SinkFunc(func(event.Event) {})}}
	e.fleet.on("server-1").host = h
	e.api = newAPI(e)
	e.api.known = &k3s.Credentials{Kubeconfig: []byte(`apiVersion: v1
kind: Config
clusters: [{name: default, cluster: {server: "https://127.0.0.1:6443", certificate-authority-data: ` + ca + `}}]
users: [{name: default, user: {token: hush}}]
contexts: [{name: default, context: {cluster: default, user: default}}]
current-context: default
`)}
	return e
}

func TestTunnel(t *testing.T) {
	api := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "version "+r.Header.Get("Authorization"))
	}))
	defer api.Close()
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw}))
	h := &apiHost{api: api.Listener.Addr().String()}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ready, done := make(chan []byte, 1), make(chan error, 1)
	go func() {
		done <- tunnelTo(t, h, ca).Tunnel(ctx, l, "test-tunnel", func(data []byte) error { ready <- data; return nil })
	}()
	var data []byte
	select {
	case data = <-ready:
	case err := <-done:
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(data)
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://"+l.Addr().String() || config.Insecure || !strings.Contains(string(data), "current-context: test-tunnel") {
		t.Errorf("kubeconfig:\n%s", data)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		res, err := client.Get(config.Host + "/version")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		if err != nil || string(body) != "version Bearer hush" || res.Body.Close() != nil {
			t.Errorf("%q, %v", body, err)
		}
		client.CloseIdleConnections()
	}
	// Without the cluster's CA the client refuses: the tunnel ends no TLS.
	if res, err := http.Get(config.Host + "/version"); err == nil {
		_ = res.Body.Close()
		t.Error("a client without the CA was content")
	}
	if n := h.dials.Load(); n < 3 {
		t.Errorf("%d connections to the API", n)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Ctrl-C: %v", err)
	}
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("the port is still open")
	}
}

func TestTunnelToAnAPIThatIsNotThere(t *testing.T) {
	gone := errors.New("connection refused")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	err = tunnelTo(t, &apiHost{closed: gone}, "").Tunnel(t.Context(), l, "x", func([]byte) error {
		t.Error("it said it was ready")
		return nil
	})
	if !errors.Is(err, gone) || !strings.Contains(err.Error(), "server-1") {
		t.Errorf("%v", err)
	}
}
