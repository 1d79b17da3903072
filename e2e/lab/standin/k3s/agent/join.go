// Package agent is the node half of k3s: it gets its certificates from the
// supervisor, runs containerd, kubelet and kube-proxy, and lays the pod
// network. A server runs it too, against itself.
package agent

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/files"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/host"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/pki"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/token"
	"github.com/sirupsen/logrus"
)

// ClusterConfig is the part of /v1-k3s/config that a node needs.
type ClusterConfig struct {
	ClusterDNS            string
	ClusterDomain         string
	ClusterCIDR           string
	FlannelBackend        string
	DisableKubeProxy      bool
	SystemDefaultRegistry string
}

// access is how a node talks to the supervisor.
type access struct {
	url    string // https://host:port, no slash at the end
	token  token.Token
	client *http.Client
	ca     []byte
}

// dial gets the CA of the cluster at url and checks it against the token.
func dial(ctx context.Context, url, text string) (*access, error) {
	if !strings.HasPrefix(url, "https://") {
		return nil, fmt.Errorf("only https:// URLs are supported, invalid scheme: %s", url)
	}
	t, err := token.Parse(text)
	if err != nil {
		return nil, err
	}
	a := &access{url: strings.TrimSuffix(url, "/"), token: t}
	a.client = httpClient(&tls.Config{InsecureSkipVerify: true}) // the CA itself is fetched here and then checked by its hash
	if a.ca, err = a.do(ctx, http.MethodGet, "/cacerts", nil, nil); err != nil {
		return nil, fmt.Errorf("failed to get CA certs: %w", err)
	}
	if t.Hash == "" {
		logrus.Warn("Cluster CA certificate is not trusted by the host CA bundle, but the token does not include a CA hash. " +
			"Use the full token from the server's node-token file to enable Cluster CA validation.")
	}
	if err := t.CheckCA(a.ca); err != nil {
		return nil, err
	}
	a.client = httpClient(&tls.Config{RootCAs: pki.Pool(a.ca)})
	return a, nil
}

func httpClient(c *tls.Config) *http.Client {
	return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: c, DisableKeepAlives: true}}
}

// statusError is an answer other than 200.
type statusError struct {
	code    int
	status  string
	url     string
	message string
}

func (e *statusError) Error() string { return fmt.Sprintf("%s: %s", e.url, e.status) }

func (a *access) do(ctx context.Context, method, path string, body []byte, header map[string]string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, a.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	switch {
	case a.token.Secret == "": // by certificate
	case a.token.Bootstrap:
		req.Header.Set("Authorization", "Bearer "+a.token.Secret)
	default:
		req.SetBasicAuth("node", a.token.Secret)
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		var st struct{ Message string }
		_ = json.Unmarshal(data, &st) // a body that is no Status leaves the message empty
		return nil, &statusError{resp.StatusCode, resp.Status, a.url + path, st.Message}
	}
	return data, nil
}

func (a *access) config(ctx context.Context) (ClusterConfig, error) {
	var c ClusterConfig
	data, err := a.do(ctx, http.MethodGet, "/v1-k3s/config", nil, nil)
	if err != nil {
		return c, fmt.Errorf("failed to retrieve configuration from server: %w", plain(err))
	}
	return c, json.Unmarshal(data, &c)
}

// plain reduces a refusal to its message.
func plain(err error) error {
	var st *statusError
	if errors.As(err, &st) && st.code == http.StatusUnauthorized && st.message != "" {
		return errors.New(st.message)
	}
	return err
}

// certificates asks for the node's four certificates and writes them, and the
// two CAs, to the agent directory.
func (n *Node) certificates(ctx context.Context, a *access) error {
	password, err := host.Password()
	if err != nil {
		return err
	}
	header := map[string]string{
		"k3s-Node-Name": n.ID.Name, "k3s-Node-Password": password, "k3s-Node-IP": n.ID.NodeIPs(),
	}
	for _, ca := range []string{"client-ca.crt", "server-ca.crt"} {
		data, err := a.do(ctx, http.MethodGet, "/v1-k3s/"+ca, nil, nil)
		if err != nil {
			return plain(err)
		}
		if err := files.Write(n.Data.Agent(ca), data, 0o600); err != nil {
			return err
		}
	}
	for _, name := range []string{"serving-kubelet", "client-kubelet", "client-kube-proxy", "client-k3s-controller"} {
		if err := n.certificate(ctx, a, name, header); err != nil {
			return fmt.Errorf("%s: %w", n.Data.Agent(name+".crt"), rejected(err))
		}
	}
	return nil
}

func (n *Node) certificate(ctx context.Context, a *access, name string, header map[string]string) error {
	key, err := pki.Key(n.Data.Agent(name + ".key"))
	if err != nil {
		return err
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		return err
	}
	crt, err := a.do(ctx, http.MethodPost, "/v1-k3s/"+name+".crt", csr, header)
	if err != nil {
		return err
	}
	return files.Write(n.Data.Agent(name+".crt"), crt, 0o600)
}

// rejected says what k3s says of a 403: it takes it for a wrong password.
func rejected(err error) error {
	var st *statusError
	if errors.As(err, &st) && st.code == http.StatusForbidden {
		return errors.New("Node password rejected, duplicate hostname or contents of '/etc/rancher/node/password' " +
			"may not match server node-passwd entry, try enabling a unique node name with the --with-node-id flag")
	}
	return err
}
