package charts

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/gpuctl/gpuctl/internal/source"
)

// Releaser brings Helm releases to the wanted state. It is safe for use by one
// goroutine at a time per release.
type Releaser struct {
	http  *http.Client
	login source.Source
	cache string
	now   func() time.Time
	every time.Duration

	// clients is called once, at the first use.
	clients func() (*clients, error)
}

// clients are what talks to one cluster.
type clients struct {
	// helm returns a fresh configuration (and with it fresh discovery) for a namespace; "" is all of them.
	helm    func(namespace string) (*action.Configuration, error)
	kube    kubernetes.Interface
	dynamic dynamic.Interface
}

// Options are a Releaser's surroundings; the zero value is fine.
type Options struct {
	// CacheDir keeps chart archives by their digest; it is checked at every use. Empty keeps none.
	CacheDir string
	// HTTP fetches indexes and archives; nil is a client with a time-out and the environment's proxies.
	HTTP *http.Client
	// Source is how to log in at the registry of charts (oci://), where HTTP alone does not do.
	Source source.Source
}

// New makes a Releaser for the cluster behind config, which may carry its own
// dialler. Nothing is contacted and no client of Helm built before the first use.
func New(config *rest.Config, o Options) *Releaser {
	r := &Releaser{http: o.HTTP, login: o.Source, cache: o.CacheDir, now: time.Now, every: 2 * time.Second}
	if r.http == nil {
		r.http = &http.Client{Timeout: 5 * time.Minute}
	}
	r.clients = sync.OnceValues(func() (*clients, error) { return connect(config) })
	return r
}

func connect(config *rest.Config) (*clients, error) {
	if config == nil {
		return nil, errors.New("connecting Helm: no cluster was given")
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting Helm: %w", err)
	}
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting Helm: %w", err)
	}
	helm := func(namespace string) (*action.Configuration, error) {
		getter, err := newRESTGetter(config, namespace)
		if err != nil {
			return nil, fmt.Errorf("connecting Helm: %w", err)
		}
		cfg := new(action.Configuration)
		if err := cfg.Init(getter, namespace, "secret", func(string, ...any) {}); err != nil {
			return nil, fmt.Errorf("connecting Helm: %w", err)
		}
		return cfg, nil
	}
	return &clients{helm: helm, kube: kube, dynamic: dyn}, nil
}

// Observe says how a release and its chart's other releases stand. It changes
// nothing and does not look at Release.Values.
func (r *Releaser) Observe(ctx context.Context, rel Release) (State, error) {
	if err := ctx.Err(); err != nil {
		return State{}, err
	}
	c, err := r.clients()
	if err != nil {
		return State{}, err
	}
	everywhere, err := c.helm("")
	if err != nil {
		return State{}, err
	}
	// Helm's storage takes no context: an API that hangs must not hold the run.
	return within(ctx, func() (State, error) { return observe(everywhere, rel) })
}

// within runs f and leaves it behind when the context ends first.
func within[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		v, err := f()
		done <- result{v, err}
	}()
	select {
	case got := <-done:
		return got.value, got.err
	case <-ctx.Done():
		var zero T
		return zero, ctx.Err()
	}
}
