package pki

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"

	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/files"
)

// ServiceAccountKey makes the RSA key that signs service account tokens,
// unless it is there.
func ServiceAccountKey(path string) error {
	if files.Exists(path) {
		return nil
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	return files.Write(path, encode("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key)), 0o600)
}
