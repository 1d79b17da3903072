// Package supervisor answers on port 6443: the join protocol of k3s, and for
// everything else the API server behind it. Codes and texts are those seen on
// a running k3s; paths are those of k3s pkg/server/handlers/router.go.
package supervisor

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/layout"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/pki"
	"github.com/sirupsen/logrus"
)

// Core is what the supervisor asks of the running control plane.
type Core interface {
	// VerifyNode checks the password of a node and records that of a new one.
	VerifyNode(ctx context.Context, node, password string) error
	// Bootstrap tells whether <id>.<secret> is a valid bootstrap token.
	Bootstrap(ctx context.Context, idAndSecret string) bool
	// APIServers lists the addresses (host:port) of all servers.
	APIServers(ctx context.Context) ([]string, error)
	// Members describes the etcd members, nil without managed etcd.
	Members(ctx context.Context) (any, error)
	// RotateToken makes secret the one that opens the datastore's bootstrap data.
	RotateToken(ctx context.Context, old, secret string) error
}

// Supervisor is the listener of one server.
type Supervisor struct {
	Data     layout.Data
	NodeName string
	ServerCA *pki.CA
	ClientCA *pki.CA
	// Config is the answer of /v1-k3s/config.
	Config any
	// Etcd says that the datastore is managed etcd.
	Etcd bool

	cert  atomic.Pointer[tls.Certificate]
	core  atomic.Pointer[Core]
	proxy atomic.Pointer[http.Handler]
	open  atomic.Bool
	ready atomic.Bool
}

// Listen opens the port at once. Until Open is called every request is
// answered with 503 "starting".
func (s *Supervisor) Listen(ctx context.Context, addr string) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	routes := s.routes()
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !s.open.Load() {
				s.refuse(w, r, http.StatusServiceUnavailable, errors.New("starting"))
				return
			}
			routes.ServeHTTP(w, r)
		}),
		ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{
			ClientAuth: tls.RequestClientCert,
			MinVersion: tls.VersionTLS12,
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
				return s.cert.Load(), nil
			},
		},
		ReadHeaderTimeout: 30 * time.Second,
	}
	go server.ServeTLS(listener, "", "")
	context.AfterFunc(ctx, func() { server.Close() })
	return nil
}

// SetCertificate presents cert to new connections.
func (s *Supervisor) SetCertificate(cert tls.Certificate) { s.cert.Store(&cert) }

// Open starts to answer requests of the join protocol.
func (s *Supervisor) Open() { s.open.Store(true) }

// SetProxy passes everything else on to the API server from now on.
func (s *Supervisor) SetProxy(h http.Handler) { s.proxy.Store(&h) }

// SetCore makes the control plane available to the join protocol.
func (s *Supervisor) SetCore(c Core) { s.core.Store(&c) }

// SetReady makes /v1-k3s/readyz answer ok.
func (s *Supervisor) SetReady() { s.ready.Store(true) }

func (s *Supervisor) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/ping", s.ping)
	mux.HandleFunc("/cacerts", s.cacerts)
	mux.HandleFunc("/static/", http.NotFound)
	agent := func(path string, h http.HandlerFunc) {
		mux.Handle(path, s.only(h, roleAgent, groupNodes, groupBootstrap))
	}
	server := func(path string, h http.HandlerFunc) { mux.Handle(path, s.only(h, roleServer)) }
	agent("/v1-k3s/config", s.config)
	agent("/v1-k3s/readyz", s.readyz)
	agent("/v1-k3s/apiservers", s.apiServers)
	agent("/v1-k3s/client-ca.crt", s.clientCA)
	agent("/v1-k3s/server-ca.crt", s.cacerts)
	agent("/v1-k3s/serving-kubelet.crt", s.servingKubelet)
	agent("/v1-k3s/client-kubelet.crt", s.clientKubelet)
	agent("/v1-k3s/client-kube-proxy.crt", s.clientOf("system:kube-proxy", "client-kube-proxy"))
	agent("/v1-k3s/client-k3s-controller.crt", s.clientOf("system:k3s-controller", "client-k3s-controller"))
	mux.Handle("/v1-k3s/connect", s.only(s.connect, groupNodes))
	server("/v1-k3s/server-bootstrap", s.serverBootstrap)
	server("/v1-k3s/encrypt/status", s.encryptStatus)
	server("/v1-k3s/token", s.putToken)
	mux.Handle("/db/info", s.only(s.dbInfo, roleServer, groupMasters))
	mux.HandleFunc("/", s.api)
	return mux
}

// api passes a request on to the API server.
func (s *Supervisor) api(w http.ResponseWriter, r *http.Request) {
	if proxy := s.proxy.Load(); proxy != nil {
		(*proxy).ServeHTTP(w, r)
		return
	}
	s.refuse(w, r, http.StatusServiceUnavailable, errors.New("apiserver not ready"))
}

// refuse answers with a Status object without apiVersion, as the supervisor of
// k3s does, and logs it.
func (s *Supervisor) refuse(w http.ResponseWriter, r *http.Request, code int, err error) {
	logrus.Errorf("Sending %s %d response to %s: %v", r.Proto, code, r.RemoteAddr, err)
	writeStatus(w, code, err.Error())
}
