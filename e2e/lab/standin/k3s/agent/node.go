package agent

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/config"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/host"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/layout"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/pki"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/process"
	"github.com/sirupsen/logrus"
)

// Node is one node of a cluster.
type Node struct {
	Options *config.Options
	Data    layout.Data
	ID      host.Identity
	Env     host.Environment
	URL     string // of the supervisor: the server itself, or the local balancer
	Shown   string // of the supervisor, as the log shows it
	Token   string
	Group   *process.Group
	// API is closed when the API server answers.
	API <-chan struct{}

	cluster ClusterConfig
}

const localAPI = "https://127.0.0.1:6444"

// Run brings the node up and returns when it is registered and has its pod
// network range. Its programs go on until ctx ends.
func (n *Node) Run(ctx context.Context) error {
	a, err := n.connect(ctx)
	if err != nil {
		return err
	}
	if err := n.retrieve(ctx, a); err != nil {
		return err
	}
	host.Setup()
	if err := n.kubeconfigs(); err != nil {
		return err
	}
	if err := n.startContainerd(ctx); err != nil {
		return fmt.Errorf("failed to start container runtime: %w", err)
	}
	select {
	case <-n.API:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := n.startProxy(ctx); err != nil {
		return err
	}
	if err := n.waitContainerd(ctx); err != nil {
		return err
	}
	if err := n.startKubelet(ctx); err != nil {
		return err
	}
	return n.join(ctx)
}

// connect tries every two seconds, without end, as k3s does.
func (n *Node) connect(ctx context.Context) (*access, error) {
	for {
		a, err := dial(ctx, n.URL, n.Token)
		if err == nil {
			return a, nil
		}
		logrus.Errorf("Failed to validate connection to cluster at %s: %v", n.Shown, err)
		if !sleep(ctx, 2*time.Second) {
			return nil, context.Cause(ctx)
		}
	}
}

// retrieve gets configuration and certificates, again and again while the
// server is not ready or refuses.
func (n *Node) retrieve(ctx context.Context, a *access) error {
	for {
		err := n.retrieveOnce(ctx, a)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return &Waiting{err}
		}
		logrus.Infof("Waiting to retrieve agent configuration; server is not ready: %v", err)
		if !sleep(ctx, 5*time.Second+rand.N(2*time.Second)) {
			return &Waiting{err}
		}
	}
}

func (n *Node) retrieveOnce(ctx context.Context, a *access) (err error) {
	if n.cluster, err = a.config(ctx); err != nil {
		return err
	}
	return n.certificates(ctx, a)
}

// Waiting is the end of a node that was stopped while it waited for its
// configuration: k3s exits 1 then.
type Waiting struct{ Last error }

func (e *Waiting) Error() string {
	return fmt.Sprintf("failed to retrieve agent configuration: %v", e.Last)
}

func (n *Node) kubeconfigs() error {
	ca := n.Data.Agent("server-ca.crt")
	for file, cert := range map[string]string{
		"kubelet": "client-kubelet", "kubeproxy": "client-kube-proxy", "k3scontroller": "client-k3s-controller",
	} {
		err := pki.Kubeconfig(n.Data.Agent(file+".kubeconfig"), localAPI, ca,
			n.Data.Agent(cert+".crt"), n.Data.Agent(cert+".key"))
		if err != nil {
			return err
		}
	}
	return nil
}

// sleep waits for d and says whether ctx is still alive.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
