package supervisor

import (
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/pki"
	"github.com/sirupsen/logrus"
)

// ErrPassword says that a node's password is not the recorded one.
var ErrPassword = errors.New("hash does not match")

// servingKubelet signs the certificate that a kubelet presents.
func (s *Supervisor) servingKubelet(w http.ResponseWriter, r *http.Request) {
	node, ok := s.node(w, r)
	if !ok {
		return
	}
	names := pki.Names{
		CN: node, DNS: []string{node, "localhost"}, IPs: []net.IP{net.IPv4(127, 0, 0, 1)},
		Usage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for ip := range strings.SplitSeq(r.Header.Get("k3s-Node-IP"), ",") {
		if parsed := net.ParseIP(strings.TrimSpace(ip)); parsed != nil {
			names.IPs = append(names.IPs, parsed)
		}
	}
	s.sign(w, r, s.ServerCA, names, "serving-kubelet")
}

// clientKubelet signs the certificate with which a kubelet logs in.
func (s *Supervisor) clientKubelet(w http.ResponseWriter, r *http.Request) {
	node, ok := s.node(w, r)
	if !ok {
		return
	}
	s.sign(w, r, s.ClientCA, pki.Names{
		CN: "system:node:" + node, Orgs: []string{groupNodes},
		Usage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, "client-kubelet")
}

// clientOf signs a certificate for a user that all nodes share.
func (s *Supervisor) clientOf(user, key string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.sign(w, r, s.ClientCA, pki.Names{CN: user, Usage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, key)
	}
}

// node checks name and password of the node that asks.
func (s *Supervisor) node(w http.ResponseWriter, r *http.Request) (string, bool) {
	name, password := strings.ToLower(r.Header.Get("k3s-Node-Name")), r.Header.Get("k3s-Node-Password")
	if name == "" || password == "" {
		what := "name"
		if name != "" {
			what = "password"
		}
		s.refuse(w, r, http.StatusBadRequest, fmt.Errorf("node %s not set", what))
		return "", false
	}
	core := s.core.Load()
	switch {
	case core != nil:
	case name == s.NodeName && local(r):
		logrus.Infof("Password verified locally for node %s", name)
		return name, true
	default:
		s.refuse(w, r, http.StatusServiceUnavailable, errCoreNotReady)
		return "", false
	}
	err := (*core).VerifyNode(r.Context(), name, password)
	switch {
	case errors.Is(err, ErrPassword):
		s.refuse(w, r, http.StatusForbidden, fmt.Errorf("unable to verify password for node %s: %w", name, err))
	case err != nil:
		s.refuse(w, r, http.StatusServiceUnavailable, fmt.Errorf("unable to verify password for node %s: %w", name, err))
	}
	return name, err == nil
}

func local(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	return err == nil && net.ParseIP(host).IsLoopback()
}

// sign answers with a certificate for the request's CSR, or for the key that
// servers keep for old agents, which then goes along.
func (s *Supervisor) sign(w http.ResponseWriter, r *http.Request, ca *pki.CA, names pki.Names, keyName string) {
	csr, err := io.ReadAll(io.LimitReader(r.Body, 1<<16))
	if err != nil {
		s.refuse(w, r, http.StatusBadRequest, err)
		return
	}
	pub, shared, err := publicKey(csr, s.Data.TLS(keyName+".key"))
	if err != nil {
		s.refuse(w, r, http.StatusBadRequest, err)
		return
	}
	crt, err := ca.Sign(pub, names)
	if err != nil {
		s.refuse(w, r, http.StatusInternalServerError, err)
		return
	}
	text(w, append(crt, shared...))
}

func publicKey(csr []byte, keyFile string) (pub crypto.PublicKey, shared []byte, err error) {
	if len(csr) > 0 {
		req, err := x509.ParseCertificateRequest(csr)
		if err != nil {
			return nil, nil, err
		}
		return req.PublicKey, nil, req.CheckSignature()
	}
	key, err := pki.Key(keyFile)
	if err != nil {
		return nil, nil, err
	}
	shared, err = os.ReadFile(keyFile)
	return key.Public(), shared, err
}
