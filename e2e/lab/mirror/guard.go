package mirror

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"
)

// Guard stands before a mirror as those of firms do: TLS by an authority that
// nobody else knows, and nothing for whoever does not log in.
type Guard struct {
	// URL is where it listens; CA are the certificates of its authority (PEM).
	URL string
	CA  []byte

	server *http.Server
	asked  Asked
}

// Login is whom a guard lets in: a user by basic authentication, or a bearer token.
type Login struct{ User, Password, Token string }

// NewGuard listens at host, an IP address, and passes on to the mirror at
// address (host:port) what comes with a login.
func NewGuard(host, address string, login Login) (*Guard, error) {
	cert, ca, err := certificate(host)
	if err != nil {
		return nil, fmt.Errorf("guarding the mirror: %w", err)
	}
	listener, err := tls.Listen("tcp", net.JoinHostPort(host, "0"), &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12})
	if err != nil {
		return nil, fmt.Errorf("guarding the mirror: %w", err)
	}
	g := &Guard{URL: "https://" + listener.Addr().String(), CA: ca}
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: address}) }}
	g.server = &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !login.admits(r) {
			w.Header().Set("WWW-Authenticate", `Basic realm="lab"`)
			http.Error(w, "log in", http.StatusUnauthorized)
			return
		}
		g.asked.Add(r.URL.Path)
		forward.ServeHTTP(w, r)
	})}
	go func() { _ = g.server.Serve(listener) }() // ends with Close
	return g, nil
}

func (l Login) admits(r *http.Request) bool {
	if user, password, ok := r.BasicAuth(); ok {
		return user == l.User && password == l.Password
	}
	return l.Token != "" && r.Header.Get("Authorization") == "Bearer "+l.Token
}

// Served says whether somebody who had logged in got something whose path holds a word.
func (g *Guard) Served(word string) bool { return g.asked.For(word) }

// Close ends it.
func (g *Guard) Close() error { return g.server.Close() }

// certificate makes an authority and a certificate of it for an IP address.
func certificate(host string) (tls.Certificate, []byte, error) {
	ip := net.ParseIP(host)
	if ip == nil {
		return tls.Certificate{}, nil, fmt.Errorf("%q is no IP address", host)
	}
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	from, until := time.Now().Add(-time.Hour), time.Now().Add(240*time.Hour)
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "gpuctl lab authority"}, NotBefore: from, NotAfter: until,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: host}, NotBefore: from, NotAfter: until, IPAddresses: []net.IP{ip},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	caDER, err := x509.CreateCertificate(rand.Reader, authority, authority, caKey.Public(), caKey)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, authority, key.Public(), caKey)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, ca, nil
}
