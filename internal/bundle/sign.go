package bundle

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
)

// ErrSignature is wrapped by errors about a signature that is missing or wrong.
var ErrSignature = errors.New("the bundle is not signed by this key")

// Signed says whether the bundle carries a signature.
func (b *Bundle) Signed() bool { return len(b.signature) > 0 }

// CheckSignature holds the manifest against a key. What the manifest names by
// checksum is bound by it.
func (b *Bundle) CheckSignature(key ed25519.PublicKey) error {
	if !b.Signed() {
		return fmt.Errorf("%w: it has no signature", ErrSignature)
	}
	if !ed25519.Verify(key, b.manifest, b.signature) {
		return ErrSignature
	}
	return nil
}

// PrivateKey reads a key to sign with: PEM, PKCS #8, Ed25519
// (openssl genpkey -algorithm ed25519).
func PrivateKey(file string) (ed25519.PrivateKey, error) {
	block, err := readPEM(file)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKCS8PrivateKey(block)
	if err != nil {
		return nil, fmt.Errorf("reading key %s: %w", file, err)
	}
	own, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("reading key %s: it is no Ed25519 key", file)
	}
	return own, nil
}

// PublicKey reads a key to check with (openssl pkey -pubout).
func PublicKey(file string) (ed25519.PublicKey, error) {
	block, err := readPEM(file)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKIXPublicKey(block)
	if err != nil {
		return nil, fmt.Errorf("reading key %s: %w", file, err)
	}
	own, ok := key.(ed25519.PublicKey)
	if !ok {
		return nil, fmt.Errorf("reading key %s: it is no Ed25519 key", file)
	}
	return own, nil
}

func readPEM(file string) ([]byte, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading key: %w", err)
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("reading key %s: it is not PEM", file)
	}
	return block.Bytes, nil
}
