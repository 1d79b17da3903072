// Package pki makes the certificate authorities and certificates of a cluster
// with the names, lifetimes and file modes of k3s: pkg/daemons/control/deps
// and rancher/dynamiclistener.
package pki

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"

	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/files"
	"github.com/sirupsen/logrus"
)

const (
	caLife   = 3650 * 24 * time.Hour
	leafLife = 365 * 24 * time.Hour
)

// CA is a certificate authority whose files are at Path.crt and Path.key.
type CA struct {
	Cert *x509.Certificate
	PEM  []byte
	key  crypto.Signer
}

// Names is what a certificate is made out to.
type Names struct {
	CN    string
	Orgs  []string
	DNS   []string
	IPs   []net.IP
	Usage []x509.ExtKeyUsage
}

// LoadCA reads the authority at path, or makes one named <name>@<unix time>.
func LoadCA(path, name string) (*CA, error) {
	if files.Exists(path+".crt") && files.Exists(path+".key") {
		return readCA(path)
	}
	now := time.Now()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial(),
		Subject:               pkix.Name{CommonName: fmt.Sprintf("%s@%d", name, now.Unix())},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(caLife),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment | x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	logrus.Infof("generated self-signed CA certificate CN=%s: notBefore=%s notAfter=%s",
		template.Subject.CommonName, template.NotBefore, template.NotAfter)
	if err := files.Write(path+".crt", encode("CERTIFICATE", der), 0o644); err != nil {
		return nil, err
	}
	if err := writeKey(path+".key", key); err != nil {
		return nil, err
	}
	return readCA(path)
}

func readCA(path string) (*CA, error) {
	pair, err := tls.LoadX509KeyPair(path+".crt", path+".key")
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path + ".crt")
	if err != nil {
		return nil, err
	}
	signer, ok := pair.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("key of %s cannot sign", path)
	}
	return &CA{Cert: pair.Leaf, PEM: text, key: signer}, nil
}

// Sign makes a certificate for the public key and returns it followed by the
// CA, in PEM.
func (ca *CA) Sign(pub crypto.PublicKey, n Names) ([]byte, error) {
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial(),
		Subject:      pkix.Name{CommonName: n.CN, Organization: n.Orgs},
		NotBefore:    ca.Cert.NotBefore,
		NotAfter:     now.Add(leafLife),
		KeyUsage:     x509.KeyUsageKeyEncipherment | x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  n.Usage,
		DNSNames:     n.DNS,
		IPAddresses:  n.IPs,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.Cert, pub, ca.key)
	if err != nil {
		return nil, err
	}
	logrus.Infof("certificate CN=%s signed by CN=%s: notBefore=%s notAfter=%s",
		n.CN, ca.Cert.Subject.CommonName, template.NotBefore, template.NotAfter)
	return append(encode("CERTIFICATE", der), ca.PEM...), nil
}

// Issue makes the certificate and key at path.crt and path.key with the given
// file mode for the certificate. An existing key is kept.
func (ca *CA) Issue(path string, n Names, mode os.FileMode) error {
	key, err := Key(path + ".key")
	if err != nil {
		return err
	}
	crt, err := ca.Sign(key.Public(), n)
	if err != nil {
		return err
	}
	return files.Write(path+".crt", crt, mode)
}

// Key reads the private key at path, or makes an EC P-256 key.
func Key(path string) (crypto.Signer, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, err
		}
		return key, writeKey(path, key)
	}
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s holds no PEM block", path)
	}
	return x509.ParseECPrivateKey(block.Bytes)
}

// Pool is a pool of one CA file's certificates.
func Pool(text []byte) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return pool
}

// SANs are the names of the first certificate in the PEM file at path, nil if
// it cannot be read.
func SANs(path string) (dns []string, ips []net.IP) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, nil
	}
	block, _ := pem.Decode(bytes.TrimSpace(text))
	if block == nil {
		return nil, nil
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, nil
	}
	return cert.DNSNames, cert.IPAddresses
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return files.Write(path, encode("EC PRIVATE KEY", der), 0o600)
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func serial() *big.Int {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 63))
	if err != nil {
		panic(err) // the system's random source never fails on Linux
	}
	return n
}
