//go:build lab

package e2e_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/gpuctl/gpuctl/e2e/lab/machine"
	"github.com/gpuctl/gpuctl/e2e/scene"
)

// metadata is AWS' instance metadata service, version 2, for one machine.
type metadata struct {
	leaving atomic.Bool
	// asked counts questions with a token.
	asked atomic.Int64
}

// newMetadata starts the service and leads the machine's 169.254.169.254 to it.
func newMetadata(t *testing.T, s *scene.Scene, m *machine.Machine) *metadata {
	t.Helper()
	d := &metadata{}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort(s.Lab.Main.Gateway, "0"))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(d)
	if err := server.Listener.Close(); err != nil {
		t.Fatal(err)
	}
	server.Listener = l
	server.Start()
	t.Cleanup(server.Close)
	s.Exec(m, fmt.Sprintf("iptables -t nat -A OUTPUT -d 169.254.169.254 -p tcp --dport 80 -j DNAT --to-destination %s", l.Addr()))
	return d
}

// ServeHTTP answers as
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html says.
func (d *metadata) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const token = "a-token"
	switch {
	case r.Method == http.MethodPut && r.URL.Path == "/latest/api/token" && r.Header.Get("X-aws-ec2-metadata-token-ttl-seconds") != "":
		_, _ = w.Write([]byte(token))
	case r.Header.Get("X-aws-ec2-metadata-token") != token:
		http.Error(w, "no token", http.StatusUnauthorized)
	case r.URL.Path == "/latest/meta-data/spot/instance-action" && d.leaving.Load():
		d.asked.Add(1)
		_, _ = w.Write([]byte(`{"action": "terminate", "time": "2026-12-01T12:02:00Z"}`))
	default:
		d.asked.Add(1)
		http.NotFound(w, r)
	}
}
