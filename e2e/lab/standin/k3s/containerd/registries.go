package containerd

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/sirupsen/logrus"
	yaml "go.yaml.in/yaml/v2"
)

// Registries is a registries.yaml. Source: rancher/wharfie pkg/registries.
type Registries struct {
	Mirrors map[string]Mirror         `yaml:"mirrors"`
	Configs map[string]RegistryConfig `yaml:"configs"`
	Auths   map[string]AuthConfig     `yaml:"auths"` // deprecated, read without effect
}

// Mirror says where images of a registry come from.
type Mirror struct {
	Endpoints []string          `yaml:"endpoint"`
	Rewrites  map[string]string `yaml:"rewrite"`
}

// RegistryConfig is how to log in to one host.
type RegistryConfig struct {
	Auth *AuthConfig `yaml:"auth"`
	TLS  *TLSConfig  `yaml:"tls"`
}

// AuthConfig are credentials of a registry.
type AuthConfig struct {
	Username      string `yaml:"username"`
	Password      string `yaml:"password"`
	Auth          string `yaml:"auth"`
	IdentityToken string `yaml:"identity_token"`
}

// TLSConfig are the certificates for one host.
type TLSConfig struct {
	CAFile             string `yaml:"ca_file"`
	CertFile           string `yaml:"cert_file"`
	KeyFile            string `yaml:"key_file"`
	InsecureSkipVerify bool   `yaml:"insecure_skip_verify"`
}

// Auth is an AuthConfig with the host that it is for.
type Auth struct {
	Host string
	AuthConfig
}

// ReadRegistries reads the file at path; a missing one is empty.
func ReadRegistries(path string) (Registries, error) {
	var r Registries
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	logrus.Infof("Using private registry config file at %s", path)
	return parseRegistries(data)
}

func parseRegistries(data []byte) (Registries, error) {
	var r Registries
	if err := yaml.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("reading private registry configuration: %w", err)
	}
	return r, nil
}

// Credentials lists the logins of all hosts in host order. They go to
// config.toml.
func (r Registries) Credentials() []Auth {
	var auths []Auth
	for _, host := range slices.Sorted(maps.Keys(r.Configs)) {
		if auth := r.Configs[host].Auth; auth != nil {
			auths = append(auths, Auth{host, *auth})
		}
	}
	return auths
}
