// Package token makes and reads k3s tokens. Source: k3s
// pkg/clientaccess/token.go.
package token

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Token is a join token taken apart.
type Token struct {
	Hash      string // 64 hex digits of the CA, empty in a short token
	User      string // "server" or "node" of a full token
	Secret    string // the password, or <id>.<secret> of a bootstrap token
	Bootstrap bool
}

const fullPrefix = "K10"

var (
	errEmpty      = errors.New("token must not be empty")
	errHashLength = errors.New("invalid token CA hash length")
	errFormat     = errors.New("invalid token format")
)

// Parse takes any form of token apart: short, full, or bootstrap.
func Parse(text string) (Token, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return Token{}, errEmpty
	}
	rest, full := strings.CutPrefix(text, fullPrefix)
	if !full {
		return Token{Secret: text, Bootstrap: IsBootstrap(text)}, nil
	}
	hash, cred, found := strings.Cut(rest, "::")
	if !found {
		return Token{}, errFormat
	}
	if len(hash) != sha256.Size*2 {
		return Token{}, errHashLength
	}
	if IsBootstrap(cred) {
		return Token{Hash: hash, Secret: cred, Bootstrap: true}, nil
	}
	user, secret, found := strings.Cut(cred, ":")
	if !found || secret == "" {
		return Token{}, errFormat
	}
	return Token{Hash: hash, User: user, Secret: secret}, nil
}

// Format writes a full token for the CA certificate ca.
func Format(ca []byte, user, secret string) string {
	return fmt.Sprintf("%s%s::%s:%s", fullPrefix, Hash(ca), user, secret)
}

// FormatBootstrap writes a full bootstrap token for the CA certificate ca.
func FormatBootstrap(ca []byte, idAndSecret string) string {
	return fullPrefix + Hash(ca) + "::" + idAndSecret
}

// Hash is the CA hash of a token: SHA-256 over the bytes served at /cacerts.
func Hash(ca []byte) string {
	sum := sha256.Sum256(ca)
	return hex.EncodeToString(sum[:])
}

// CheckCA compares the hash of a full token with the CA the server presents.
func (t Token) CheckCA(ca []byte) error {
	if have := Hash(ca); t.Hash != "" && t.Hash != have {
		return fmt.Errorf("token CA hash does not match the Cluster CA certificate hash: %s != %s", t.Hash, have)
	}
	return nil
}

// NewSecret makes 16 random bytes as 32 hex digits.
func NewSecret() string {
	b := make([]byte, 16)
	rand.Read(b)
	return hex.EncodeToString(b)
}

// NewBootstrap makes an id and a secret for a bootstrap token: <6>.<16>.
func NewBootstrap() string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	b := make([]byte, 22)
	rand.Read(b)
	for i := range b {
		b[i] = letters[int(b[i])%len(letters)]
	}
	return string(b[:6]) + "." + string(b[6:])
}

// IsBootstrap tells whether text has the shape of a bootstrap token.
func IsBootstrap(text string) bool {
	return regexp.MustCompile(`^[a-z0-9]{6}\.[a-z0-9]{16}$`).MatchString(text)
}
