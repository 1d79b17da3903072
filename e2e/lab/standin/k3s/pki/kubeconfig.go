package pki

import (
	"encoding/base64"
	"fmt"
	"os"

	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/files"
)

// Kubeconfig writes a kubeconfig that names certificate files, as the ones of
// the components do (context Default).
func Kubeconfig(path, server, ca, crt, key string) error {
	text := fmt.Sprintf(`apiVersion: v1
clusters:
- cluster:
    server: %s
    certificate-authority: %s
  name: local
contexts:
- context:
    cluster: local
    namespace: default
    user: user
  name: Default
current-context: Default
kind: Config
preferences: {}
users:
- name: user
  user:
    client-certificate: %s
    client-key: %s
`, server, ca, crt, key)
	return files.Write(path, []byte(text), 0o600)
}

// AdminKubeconfig writes the kubeconfig for users, with everything embedded
// and every name "default".
func AdminKubeconfig(path, server, ca, crt, key string, mode os.FileMode) error {
	var data [3]string
	for i, f := range []string{ca, crt, key} {
		text, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		data[i] = base64.StdEncoding.EncodeToString(text)
	}
	text := fmt.Sprintf(`apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: %s
    server: %s
  name: default
contexts:
- context:
    cluster: default
    user: default
  name: default
current-context: default
kind: Config
users:
- name: default
  user:
    client-certificate-data: %s
    client-key-data: %s
`, data[0], server, data[1], data[2])
	if err := os.MkdirAll("/etc/rancher/k3s", 0o755); err != nil {
		return err
	}
	return files.Write(path, []byte(text), mode)
}
