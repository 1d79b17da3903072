package kube

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestConnectDials checks TLS through a dialler that leads elsewhere, as SSH does.
func TestConnectDials(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system"}}`)
	}))
	defer server.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	kubeconfig := func(ca []byte, extra string) []byte {
		return []byte("apiVersion: v1\nkind: Config\ncurrent-context: default\ncontexts: [{name: default, context: {cluster: default, user: default}}]\nusers: [{name: default, user: {token: t}}]\nclusters: [{name: default, cluster: {server: 'https://127.0.0.1:6443', " + extra + "certificate-authority-data: " + base64.StdEncoding.EncodeToString(ca) + "}}]\n")
	}
	dialled := ""
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		dialled = address
		return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
	}
	c, err := Connect(kubeconfig(ca, ""), dial)
	must(t, err)
	if done, _, err := c.APIReady()(context.Background()); !done || err != nil || dialled != "127.0.0.1:6443" {
		t.Errorf("done %v, error %v, dialled %q", done, err, dialled)
	}
	c, err = Connect(kubeconfig(otherCA(t), ""), dial)
	must(t, err)
	if done, _, err := c.APIReady()(context.Background()); done || err == nil || IsNoAPI(err) {
		t.Errorf("another CA: done %v, error %v", done, err)
	}
	if _, err := Connect([]byte(strings.Replace(string(kubeconfig(nil, "insecure-skip-tls-verify: true, ")), "certificate-authority-data: ", "proxy-url: ", 1)), dial); err == nil {
		t.Error("insecure-skip-tls-verify was accepted")
	}
	refused := func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("administratively prohibited")
	}
	c, err = Connect(kubeconfig(ca, ""), refused)
	must(t, err)
	if s, err := c.Snapshot(context.Background()); err != nil || !strings.Contains(s.NoAPI, "prohibited") {
		t.Errorf("%+v %v", s, err)
	}
}

// otherCA is a certificate authority that has signed nothing here.
func otherCA(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, &key.PublicKey, key)
	must(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
