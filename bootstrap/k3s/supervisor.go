package k3s

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
)

// Supervisor asks k3s itself on port 6443, in the name of a server. Paths are
// those of k3s pkg/server/handlers/router.go; k3s's own commands use them too.
type Supervisor struct {
	client *http.Client
	secret string
}

// Member is one member of etcd.
type Member struct {
	Name      string   `json:"name"`
	PeerURLs  []string `json:"peerURLs"`
	IsLearner bool     `json:"isLearner"`
}

// Node is the node of a member: k3s names members NODE-<8 hex digits>.
func (m Member) Node() string {
	if i := strings.LastIndex(m.Name, "-"); i > 0 {
		return m.Name[:i]
	}
	return m.Name
}

// NewSupervisor makes a client whose connections dial opens, as seen from a
// server. TLS is checked against the cluster's CA.
func NewSupervisor(c Credentials, dial func(ctx context.Context, network, address string) (net.Conn, error)) (*Supervisor, error) {
	var file struct {
		Clusters []struct {
			Cluster struct {
				Data string `yaml:"certificate-authority-data"`
			} `yaml:"cluster"`
		} `yaml:"clusters"`
	}
	if err := yaml.Unmarshal(c.Kubeconfig, &file); err != nil || len(file.Clusters) == 0 {
		return nil, errors.New("reaching k3s's own port: the kubeconfig names no cluster")
	}
	ca, err := base64.StdEncoding.DecodeString(file.Clusters[0].Cluster.Data)
	roots := x509.NewCertPool()
	if err != nil || !roots.AppendCertsFromPEM(ca) {
		return nil, errors.New("reaching k3s's own port: the kubeconfig has no certificate of the CA")
	}
	transport := &http.Transport{DialContext: dial, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true}
	return &Supervisor{client: &http.Client{Timeout: 30 * time.Second, Transport: transport}, secret: secretOf(c.ServerToken)}, nil
}

// Members lists the members of etcd. A server without etcd refuses.
func (s *Supervisor) Members(ctx context.Context) ([]Member, error) {
	var answer struct {
		Members []Member `json:"members"`
	}
	body, err := s.ask(ctx, http.MethodGet, "/db/info", nil)
	if err == nil {
		err = json.Unmarshal(body, &answer)
	}
	if err != nil {
		return nil, fmt.Errorf("listing the members of etcd: %w", err)
	}
	return answer.Members, nil
}

// RotateToken changes the server token of the cluster, as `k3s token rotate`
// does, without a secret in an argument list. The server that is asked writes
// it to its files; every server must be given it and start again.
func (s *Supervisor) RotateToken(ctx context.Context, secret string) error {
	body, err := json.Marshal(map[string]string{"newToken": secret})
	if err == nil {
		_, err = s.ask(ctx, http.MethodPut, "/v1-k3s/token", body)
	}
	if err != nil {
		return fmt.Errorf("rotating the server token: %w", err)
	}
	s.secret = secret
	return nil
}

func (s *Supervisor) ask(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, "https://127.0.0.1:6443"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.SetBasicAuth("server", s.secret)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("k3s answers %s on %s", resp.Status, path)
	}
	return answer, err
}
