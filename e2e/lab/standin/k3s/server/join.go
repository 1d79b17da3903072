package server

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/files"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/pki"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/supervisor"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/token"
	"github.com/sirupsen/logrus"
)

// leader is the server by which this one joins a cluster.
type leader struct {
	url    string
	secret string
	client *http.Client
}

// shutdown is an error with which k3s ends without an exit code.
type shutdown struct{ cause error }

func (e *shutdown) Error() string { return e.cause.Error() }

// Shutdown says whether k3s ends on err as if it had been asked to.
func Shutdown(err error) bool {
	var s *shutdown
	return errors.As(err, &s)
}

// told says whether the options name a server to join and a token. Without a
// token k3s starts a cluster of its own, and so does this.
func (s *Server) told() bool {
	given, err := TokenOption(s.Options, "token")
	return s.Options.String("server") != "" && err == nil && given != ""
}

// join gets what all servers share from the one to join, before anything is
// made here. Source: k3s pkg/cluster/bootstrap.go.
func (s *Server) join(ctx context.Context) error {
	if !s.told() || s.hasEtcdData() || s.Options.Bool("cluster-reset") {
		return nil
	}
	logrus.Info("Managed etcd cluster not yet initialized")
	text, err := TokenOption(s.Options, "token")
	if err != nil {
		return err
	}
	if s.leader, err = dialLeader(ctx, s.Options.String("server"), text); err != nil {
		return fmt.Errorf("preparing server: failed to validate token: %w", err)
	}
	if err := s.compare(ctx); err != nil {
		return err
	}
	var shared map[string]supervisor.BootstrapFile
	if err := s.leader.get(ctx, "server", s.leader.secret, "/v1-k3s/server-bootstrap", &shared); err != nil {
		return fmt.Errorf("preparing server: failed to bootstrap cluster data: %w", err)
	}
	for name, path := range supervisor.BootstrapPaths() {
		if f, there := shared[name]; there {
			if err := files.Write(s.Data.TLS(path), f.Content, 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}

func dialLeader(ctx context.Context, url, text string) (*leader, error) {
	if !strings.HasPrefix(url, "https://") {
		return nil, fmt.Errorf("only https:// URLs are supported, invalid scheme: %s", url)
	}
	t, err := token.Parse(text)
	if err != nil {
		return nil, err
	}
	l := &leader{url: strings.TrimSuffix(url, "/"), secret: t.Secret}
	l.client = leaderClient(&tls.Config{InsecureSkipVerify: true}) // the CA itself is fetched here and then checked by its hash
	ca, err := l.ask(ctx, "", "", "/cacerts")
	if err != nil {
		return nil, fmt.Errorf("failed to get CA certs: %w", err)
	}
	if err := t.CheckCA(ca); err != nil {
		return nil, err
	}
	l.client = leaderClient(&tls.Config{RootCAs: pki.Pool(ca)})
	return l, nil
}

func leaderClient(c *tls.Config) *http.Client {
	return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: c, DisableKeepAlives: true}}
}

func (l *leader) ask(ctx context.Context, user, secret, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.url+path, nil)
	if err != nil {
		return nil, err
	}
	if user != "" {
		req.SetBasicAuth(user, secret)
	}
	resp, err := l.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", l.url+path, resp.Status)
	}
	return body, err
}

func (l *leader) get(ctx context.Context, user, secret, path string, into any) error {
	body, err := l.ask(ctx, user, secret, path)
	if err != nil {
		return err
	}
	return json.Unmarshal(body, into)
}

// compare holds this server's options against those of the cluster.
func (s *Server) compare(ctx context.Context) error {
	agent, err := TokenOption(s.Options, "agent-token")
	if err != nil {
		return err
	}
	secret, err := secretOf(agent)
	if err != nil {
		return err
	}
	if secret == "" {
		secret = s.leader.secret
	}
	var theirs, ours map[string]any
	if err := s.leader.get(ctx, "node", secret, "/v1-k3s/config", &theirs); err != nil {
		logrus.Warnf("Skipping cluster configuration validation: %v", err)
		return nil
	}
	text, err := json.Marshal(s.shared())
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &ours); err != nil {
		return err
	}
	var differ []string
	for flag, key := range map[string]string{
		"cluster-cidr": "ClusterIPRanges", "service-cidr": "ServiceIPRanges", "cluster-dns": "ClusterDNSs",
		"cluster-domain": "ClusterDomain", "flannel-backend": "FlannelBackend", "secrets-encryption": "EncryptSecrets",
		"egress-selector-mode": "EgressSelectorMode", "flannel-external-ip": "FlannelExternalIP",
	} {
		if !reflect.DeepEqual(theirs[key], ours[key]) {
			differ = append(differ, flag)
		}
	}
	slices.Sort(differ)
	for _, flag := range differ {
		logrus.Errorf("critical configuration mismatched: %s", flag)
	}
	if len(differ) > 0 {
		return errors.New("preparing server: failed to validate server configuration: critical configuration value mismatch between servers")
	}
	return nil
}
