// Package kube observes and changes a cluster through its API: nodes, GPU
// accounting, waits that end and say why, draining, and kubeconfig files.
package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Dial opens a connection to the API server; it may go through SSH.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Client talks to one cluster. It is safe for concurrent use.
type Client struct {
	set    kubernetes.Interface
	dyn    dynamic.Interface
	config *rest.Config
}

// Connect makes a client from a kubeconfig. With dial every connection goes
// through it, to the address the kubeconfig names (127.0.0.1:6443 as seen from
// a k3s server); TLS is checked against the kubeconfig's CA all the same.
// Nothing is sent yet.
func Connect(kubeconfig []byte, dial Dial) (*Client, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig: %w", err)
	}
	if config.Insecure {
		return nil, errors.New("reading kubeconfig: insecure-skip-tls-verify is not accepted")
	}
	if dial != nil {
		config.Dial = dial
		// The proxy of this machine's environment is not for connections through another one.
		config.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	}
	// One user with a handful of parallel waits: the default of 5 a second would be the slowest part.
	config.QPS, config.Burst = 100, 200
	config.UserAgent = "gpuctl"
	// Deprecations in charts of others are nothing the user of this tool can act on.
	config.WarningHandler, config.WarningHandlerWithContext = rest.NoWarnings{}, rest.NoWarnings{}
	if config, err = sharing(config); err != nil {
		return nil, fmt.Errorf("making the API client: %w", err)
	}
	set, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the API client: %w", err)
	}
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the API client: %w", err)
	}
	return &Client{set: set, dyn: dyn, config: config}, nil
}

// sharing returns a configuration whose clients, Helm's among them, share one
// transport. client-go cannot tell that two dial functions are one, and would
// open connections for each client: through SSH that is a channel and a TLS
// handshake every time.
func sharing(config *rest.Config) (*rest.Config, error) {
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	host, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host: host.String(), APIPath: config.APIPath, Transport: transport, QPS: config.QPS, Burst: config.Burst, UserAgent: config.UserAgent,
		WarningHandler: config.WarningHandler, WarningHandlerWithContext: config.WarningHandlerWithContext, Timeout: config.Timeout,
	}, nil
}

// New makes a client of given parts, for tests and for callers that have them.
func New(set kubernetes.Interface, dyn dynamic.Interface) *Client {
	return &Client{set: set, dyn: dyn}
}

// Interface is the typed client.
func (c *Client) Interface() kubernetes.Interface { return c.set }

// Dynamic is the client for objects without Go types here.
func (c *Client) Dynamic() dynamic.Interface { return c.dyn }

// Config is a copy of the REST configuration, its transport with dial and certificates included; nil for clients made by New.
func (c *Client) Config() *rest.Config {
	if c.config == nil {
		return nil
	}
	return rest.CopyConfig(c.config)
}

// IsNoAPI reports whether an error means that the API server is not there (not
// yet, or not now), as opposed to one that refuses. A certificate or a login
// that does not fit never heals by waiting.
func IsNoAPI(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	if apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err) ||
		apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) {
		return true
	}
	if isCertificate(err) {
		return false
	}
	var transport *url.Error
	var network net.Error
	// An answer that breaks off: client-go's "unexpected error when reading response
	// body. Please retry." (rest/request.go).
	cut := errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
	return cut || errors.As(err, &transport) || errors.As(err, &network)
}
