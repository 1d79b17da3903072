package server

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"

	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/files"
)

func (s *Server) encryptionConfig() string { return s.Data.Cred("encryption-config.json") }

// writeEncryption makes the key for Secrets when the option asks for it.
func (s *Server) writeEncryption() error {
	if !s.Options.Bool("secrets-encryption") || files.Exists(s.encryptionConfig()) {
		return nil
	}
	key := make([]byte, 32)
	rand.Read(key)
	text := fmt.Sprintf(`{"kind":"EncryptionConfiguration","apiVersion":"apiserver.config.k8s.io/v1","resources":`+
		`[{"resources":["secrets"],"providers":[{"aescbc":{"keys":[{"name":"aescbckey","secret":%q}]}},{"identity":{}}]}]}`,
		base64.StdEncoding.EncodeToString(key))
	if err := files.Write(s.encryptionConfig(), []byte(text), 0o600); err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(text))
	return files.Write(s.Data.Cred("encryption-state.json"), []byte("start-"+hex.EncodeToString(sum[:])), 0o600)
}

func (s *Server) writePSK() error {
	path := s.Data.Cred("ipsec.psk")
	if files.Exists(path) {
		return nil
	}
	psk := make([]byte, 48)
	rand.Read(psk)
	return files.Write(path, []byte(hex.EncodeToString(psk)), 0o600)
}
