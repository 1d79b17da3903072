package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"time"

	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/files"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/pki"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// authorities are the CAs of a cluster.
type authorities struct {
	server, client, requestHeader, etcdServer, etcdPeer *pki.CA
}

const apiURL = "https://127.0.0.1:6444"

// certificates makes what of server/tls and server/cred is not there yet.
func (s *Server) certificates(context.Context) error {
	for _, dir := range []string{"", "temporary-certs"} {
		if err := files.Dir(s.Data.TLS(dir), 0o700); err != nil {
			return err
		}
	}
	for _, dir := range []string{"etcd", "kube-scheduler", "kube-controller-manager"} {
		if err := files.Dir(s.Data.TLS(dir), 0o755); err != nil {
			return err
		}
	}
	for _, ca := range []struct {
		to         **pki.CA
		file, name string
	}{
		{&s.pki.client, "client-ca", "k3s-client-ca"}, {&s.pki.server, "server-ca", "k3s-server-ca"},
		{&s.pki.requestHeader, "request-header-ca", "k3s-request-header-ca"},
		{&s.pki.etcdServer, "etcd/server-ca", "etcd-server-ca"}, {&s.pki.etcdPeer, "etcd/peer-ca", "etcd-peer-ca"},
	} {
		loaded, err := pki.LoadCA(s.Data.TLS(ca.file), ca.name)
		if err != nil {
			return err
		}
		*ca.to = loaded
	}
	for file, ca := range map[string]*pki.CA{"server-ca.nochain.crt": s.pki.server, "client-ca.nochain.crt": s.pki.client} {
		if err := files.Write(s.Data.TLS(file), ca.PEM, 0o644); err != nil {
			return err
		}
	}
	if err := s.leafs(); err != nil {
		return err
	}
	if err := s.sharedKeys(); err != nil {
		return err
	}
	return s.kubeconfigs()
}

func (s *Server) leafs() error {
	client, server := x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth
	as := func(cn string, orgs ...string) pki.Names {
		return pki.Names{CN: cn, Orgs: orgs, Usage: []x509.ExtKeyUsage{client}}
	}
	local := s.localNames()
	serving := func(cn string, usage ...x509.ExtKeyUsage) pki.Names {
		return pki.Names{CN: cn, DNS: local.DNS, IPs: local.IPs, Usage: usage}
	}
	for _, leaf := range []struct {
		ca    *pki.CA
		file  string
		names pki.Names
	}{
		{s.pki.client, "client-admin", as("system:admin", "system:masters")},
		{s.pki.client, "client-supervisor", as("system:k3s-supervisor", "system:masters")},
		{s.pki.client, "client-controller", as("system:kube-controller-manager")},
		{s.pki.client, "client-scheduler", as("system:kube-scheduler")},
		{s.pki.client, "client-kube-apiserver", as("system:apiserver", "system:masters")},
		{s.pki.client, "client-k3s-cloud-controller", as("k3s-cloud-controller-manager")},
		{s.pki.requestHeader, "client-auth-proxy", as("system:auth-proxy")},
		{s.pki.server, "serving-kube-apiserver", serving("kube-apiserver", server)},
		{s.pki.server, "kube-scheduler/kube-scheduler", serving("kube-scheduler", server)},
		{s.pki.server, "kube-controller-manager/kube-controller-manager", serving("kube-controller-manager", server)},
		{s.pki.etcdServer, "etcd/client", as("etcd-client")},
		{s.pki.etcdServer, "etcd/server-client", serving("etcd-server", server, client)},
		{s.pki.etcdPeer, "etcd/peer-server-client", serving("etcd-peer", server, client)},
	} {
		if err := leaf.ca.Issue(s.Data.TLS(leaf.file), leaf.names, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// sharedKeys makes the keys that all nodes may use and the other secrets.
func (s *Server) sharedKeys() error {
	for _, name := range []string{"client-kubelet", "serving-kubelet", "client-kube-proxy", "client-k3s-controller"} {
		if _, err := pki.Key(s.Data.TLS(name + ".key")); err != nil {
			return err
		}
	}
	if err := pki.ServiceAccountKey(s.Data.TLS("service.key")); err != nil {
		return err
	}
	key, err := os.ReadFile(s.Data.TLS("service.key"))
	if err != nil {
		return err
	}
	if err := files.Write(s.Data.TLS("service.current.key"), key, 0o600); err != nil {
		return err
	}
	if err := s.writePSK(); err != nil {
		return err
	}
	return s.writeEncryption()
}

func (s *Server) kubeconfigs() error {
	for file, cert := range map[string]string{
		"admin": "client-admin", "supervisor": "client-supervisor", "controller": "client-controller",
		"scheduler": "client-scheduler", "api-server": "client-kube-apiserver",
		"cloud-controller": "client-k3s-cloud-controller",
	} {
		err := pki.Kubeconfig(s.Data.Cred(file+".kubeconfig"), apiURL, s.Data.TLS("server-ca.crt"),
			s.Data.TLS(cert+".crt"), s.Data.TLS(cert+".key"))
		if err != nil {
			return err
		}
	}
	return nil
}

// localNames are the names of this server's certificates.
func (s *Server) localNames() pki.Names {
	names := pki.Names{
		DNS: []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc." + s.domain,
			"localhost", s.ID.Name},
		IPs: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback, nth(s.serviceCIDR, 1)},
	}
	names.IPs = append(append(names.IPs, s.ID.IPs...), s.ID.ExternalIP...)
	for _, san := range s.Options.List("tls-san") {
		if ip := net.ParseIP(san); ip != nil {
			names.IPs = append(names.IPs, ip)
		} else {
			names.DNS = append(names.DNS, san)
		}
	}
	return names
}

// servingCertificate makes the certificate of port 6443. Names that an earlier
// one had stay in it.
func (s *Server) servingCertificate() (tls.Certificate, error) {
	names := s.localNames()
	names.CN, names.Orgs, names.Usage = "k3s", []string{"k3s"}, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	path := s.Data.TLS("temporary-certs", "k3s-serving")
	dns, ips := pki.SANs(path + ".crt")
	for _, name := range dns {
		if !slices.Contains(names.DNS, name) {
			names.DNS = append(names.DNS, name)
		}
	}
	for _, ip := range ips {
		if !slices.ContainsFunc(names.IPs, ip.Equal) {
			names.IPs = append(names.IPs, ip)
		}
	}
	if err := s.pki.server.Issue(path, names, 0o600); err != nil {
		return tls.Certificate{}, err
	}
	crt, err := os.ReadFile(path + ".crt")
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := os.ReadFile(path + ".key")
	if err != nil {
		return tls.Certificate{}, err
	}
	cached, err := json.Marshal(servingSecret(crt, key))
	if err != nil {
		return tls.Certificate{}, err
	}
	if err := files.Write(s.Data.TLS("dynamic-cert.json"), cached, 0o600); err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(crt, key)
}

func servingSecret(crt, key []byte) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: "k3s-serving", Namespace: metav1.NamespaceSystem},
		Type:       corev1.SecretTypeTLS,
		Data:       map[string][]byte{corev1.TLSCertKey: crt, corev1.TLSPrivateKeyKey: key},
	}
}

// keepCertificate keeps the serving certificate in the cluster too.
func (s *Server) keepCertificate(ctx context.Context) {
	path := s.Data.TLS("temporary-certs", "k3s-serving")
	crt, err := os.ReadFile(path + ".crt")
	if err != nil {
		return
	}
	key, err := os.ReadFile(path + ".key")
	if err != nil {
		return
	}
	secrets := s.client.CoreV1().Secrets(metav1.NamespaceSystem)
	for ctx.Err() == nil {
		_, err := secrets.Update(ctx, servingSecret(crt, key), metav1.UpdateOptions{})
		if err != nil {
			_, err = secrets.Create(ctx, servingSecret(crt, key), metav1.CreateOptions{})
		}
		if err == nil {
			return
		}
		time.Sleep(time.Second)
	}
}

// proxy reaches the API server in the name of the front proxy.
func (s *Server) proxy() (http.Handler, error) {
	pair, err := tls.LoadX509KeyPair(s.Data.TLS("client-auth-proxy.crt"), s.Data.TLS("client-auth-proxy.key"))
	if err != nil {
		return nil, err
	}
	target, err := url.Parse(apiURL)
	if err != nil {
		return nil, err
	}
	return s.supervisor.Proxy(target, &tls.Config{
		RootCAs: pki.Pool(s.pki.server.PEM), Certificates: []tls.Certificate{pair},
	}), nil
}
