package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/bootstrap/k3s"
	"github.com/gpuctl/gpuctl/charts"
	"github.com/gpuctl/gpuctl/internal/kube"
)

// api is the way to the cluster: credentials read once from the server by SSH,
// and clients whose every connection goes through the server's SSH connection,
// because many providers open port 22 alone.
type api struct {
	engine *Engine

	laid     atomic.Pointer[[]byte] // host keys that this run has left on the server
	mu       sync.Mutex             // held while reading: the others wait for that answer
	known    *k3s.Credentials
	client   *kube.Client
	releaser *charts.Releaser

	// last is the server through which the API was reached last.
	last atomic.Pointer[string]
}

func newAPI(e *Engine) *api { return &api{engine: e} }

// credentials returns the cluster's secrets; k3s.ErrNoCredentials where k3s has
// never started on the server.
func (a *api) credentials(ctx context.Context) (k3s.Credentials, error) {
	if e := a.engine.want.existing(); e != nil {
		return a.existing(*e)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known != nil {
		return *a.known, nil
	}
	c, err := a.read(ctx)
	if err != nil {
		return c, err
	}
	if why := a.engine.want.otherCluster(c); why != "" {
		return k3s.Credentials{}, a.engine.want.refused(why)
	}
	if err := a.engine.keepID(c.ClusterID); err != nil {
		return k3s.Credentials{}, err
	}
	a.engine.settings.Secret(c.AgentToken)
	a.engine.settings.Secret(c.ServerToken)
	a.known = &c
	return c, nil
}

// forget drops what was read of the cluster's secrets: they are others now.
func (a *api) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known, a.client, a.releaser = nil, nil, nil
}

// connect returns the clients. Nothing is sent to the API yet.
func (a *api) connect(ctx context.Context) (*kube.Client, *charts.Releaser, error) {
	c, err := a.credentials(ctx)
	if err != nil {
		return nil, nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.client != nil {
		return a.client, a.releaser, nil
	}
	dial, through := a.way()
	client, err := kube.Connect(c.Kubeconfig, dial)
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to the API through %s: %w", through, err)
	}
	repository := sourceOf(a.engine.want.config.Spec.Sources.Charts)
	fetch, err := repository.Client(5 * time.Minute)
	if err != nil {
		return nil, nil, fmt.Errorf("reaching spec.sources.charts: %w", err)
	}
	a.client = client
	a.releaser = charts.New(client.Config(), charts.Options{CacheDir: a.engine.settings.ChartCache, HTTP: fetch, Source: repository})
	return a.client, a.releaser, nil
}

// way is how connections to the API are made, and its name.
func (a *api) way() (dial kube.Dial, through string) {
	if a.engine.want.existing() != nil {
		return nil, "its kubeconfig"
	}
	return a.through, a.order()[0].Name
}

// clusterSight is what was seen through the API.
type clusterSight struct {
	state   kube.State
	release charts.State
	// at is when it was seen: ages of pending releases count from it.
	at time.Time
	// untold is why the server did not give its credentials, nil where it did.
	untold error
}

// there says whether an API answered.
func (c clusterSight) there() bool { return c.state.NoAPI == "" }

// observeCluster asks the API, if there is one. That there is none yet is a
// value; so is a refusal, whose text is the reason.
func (e *Engine) observeCluster(ctx context.Context, s *sight) {
	s.other = ""
	if laid := e.api.laid.Load(); laid != nil {
		s.laid = *laid
	}
	s.cluster = clusterSight{at: time.Now(), state: kube.State{NoAPI: e.want.noServer()}}
	if e.want.serverDown(*s) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 45*time.Second)
	defer cancel()
	c, err := e.api.credentials(ctx)
	if err != nil {
		s.cluster.state.NoAPI, s.cluster.untold = noAPI(err), err
		var blocked *BlockedError
		if errors.As(err, &blocked) {
			s.other = blocked.Findings[0].Evidence
		}
		return
	}
	s.credentials = &c
	if e.want.blind() {
		return
	}
	client, releaser, err := e.api.connect(ctx)
	if err != nil {
		s.cluster.state.NoAPI = noAPI(err)
		return
	}
	// Both are asked at once: each question costs a round trip.
	var failed error
	var asking sync.WaitGroup
	if rel, serves := e.want.gpuRelease(*s); serves && releaser != nil {
		asking.Go(func() {
			s.cluster.release, failed = releaser.Observe(ctx, rel)
		})
	}
	state, err := client.Snapshot(ctx)
	asking.Wait()
	if err != nil {
		s.cluster.state.NoAPI = noAPI(err)
		return
	}
	s.cluster.state = state
	if s.cluster.there() && failed != nil {
		s.cluster.state.NoAPI = noAPI(failed)
	}
}

func noAPI(err error) string {
	if errors.Is(err, k3s.ErrNoCredentials) {
		return "k3s has not started yet"
	}
	return err.Error()
}

func serverRuns(f host.Facts) bool { return f.K3s.Value.Units["k3s"].Active == "active" }
