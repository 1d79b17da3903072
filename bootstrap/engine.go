package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/k3s"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/bootstrap/spread"
	"github.com/gpuctl/gpuctl/charts"
	"github.com/gpuctl/gpuctl/internal/bundle"
	"github.com/gpuctl/gpuctl/internal/config"
	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/event"
	"github.com/gpuctl/gpuctl/internal/inventory"
)

// Settings are what an Engine is made of.
type Settings struct {
	Config    config.Config
	Set       charts.Set
	Inventory inventory.Inventory
	// Nodes are the machines that may change; none means all.
	Nodes []string
	// Dial connects to a machine.
	Dial Dialer
	Sink event.Sink
	Log  *slog.Logger
	// Secret is told every secret that comes up, so that records can mask it.
	Secret func(string)
	// Read fetches a secret that stands at a field of the configuration; nil reads it where it is and asks nobody.
	Read func(s config.Secret, field string) (string, error)
	// Key makes the hashes by which drift of files shows; it is random and secret.
	Key string
	// Who runs this and where ("ann@laptop"), for others who find the cluster locked.
	Who string
	// Owner names the local state of this cluster, in records of releases.
	Owner string
	// KnownHosts is the known_hosts file of this cluster.
	KnownHosts string
	// Kubeconfig is the one kept from an earlier time, nil without one: the doctor's
	// way to the API where the server is not reached by SSH.
	Kubeconfig []byte
	// Outside dials from this computer, to see what the world reaches; nil is net.Dialer.
	Outside dialFunc
	// ChartCache is a directory for chart archives; empty keeps none.
	ChartCache string
	// ClusterID is the cluster's id as this computer knows it, empty before the first
	// contact; FreshID is the one that a new cluster gets, empty for none; KeepID
	// remembers the one in force.
	ClusterID, FreshID string
	KeepID             func(id string) error
	// Force lets versions meet that no tested set has together.
	Force bool
	// Bundle is an offline bundle that takes the place of every source; nil is none.
	Bundle *bundle.Bundle
}

// Engine does what gpuctl's commands ask for, on one cluster.
type Engine struct {
	settings Settings
	want     wanted
	fleet    *fleet
	tell     narrator
	spread   *spread.Spreader

	mu    sync.Mutex // guards sight
	sight sight
	api   *api
}

// New makes an engine. It connects to nothing yet.
func New(s Settings) (*Engine, error) {
	machines := s.Inventory.Machines
	if len(s.Inventory.Servers()) == 0 && s.Config.Spec.Kubernetes.Existing == nil {
		return nil, fmt.Errorf("no machine of cluster %s has the role server", s.Inventory.Cluster)
	}
	if len(s.Nodes) > 0 {
		machines = slices.DeleteFunc(slices.Clone(machines), func(m inventory.Machine) bool {
			return m.Role != inventory.Server && !slices.Contains(s.Nodes, m.Name)
		})
	}
	if s.Secret == nil {
		s.Secret = func(string) {}
	}
	if s.Read == nil {
		s.Read = func(place config.Secret, _ string) (string, error) { return place.Read() }
	}
	s.Secret(s.Key)
	e := &Engine{
		settings: s, tell: narrator{s.Sink},
		want:   wanted{config: s.Config, set: s.Set, machines: machines, key: s.Key, owner: s.Owner, only: s.Nodes, force: s.Force, pinned: s.ClusterID, fresh: s.FreshID},
		fleet:  newFleet(machines, s.Dial, s.Sink),
		spread: spread.New(s.Secret),
	}
	e.fleet.setEnv(downloadEnv(s.Config.Spec.Proxy))
	e.api = newAPI(e)
	if s.Bundle != nil {
		e.want.config.Spec.Sources = config.Sources{}
		var err error
		if e.want.bundle, err = takeBundle(s.Bundle, s.ChartCache); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// Close ends all connections, after what machines still do for others.
func (e *Engine) Close() error {
	e.spread.Close(context.Background())
	return e.fleet.close()
}

// doer is what actions use when they are applied.
type doer struct {
	on          func(machine string) remote.Runner
	credentials func(context.Context) (k3s.Credentials, error)
	api         *api
	smoke       *smokeLog
	// spread brings large files to machines; nil where nothing is applied.
	spread *spread.Spreader
}

func (e *Engine) doer() doer {
	return doer{
		on:          func(name string) remote.Runner { return e.fleet.on(name) },
		credentials: e.api.credentials,
		api:         e.api,
		smoke:       &smokeLog{},
		spread:      e.spread,
	}
}

// plan makes the book of what was seen and keeps to the machines that may change.
func (e *Engine) plan(s sight, do doer) book {
	b := e.want.whole().contents(s, do)
	if len(e.settings.Nodes) > 0 {
		b.actions = slices.DeleteFunc(b.actions, func(a plan.Action) bool {
			return a.Machine != "" && !slices.Contains(e.settings.Nodes, a.Machine)
		})
	}
	return b
}

// Check looks at every machine and changes nothing. The error is a
// *BlockedError where a finding blocks, joined with the reasons why machines
// were not reached.
func (e *Engine) Check(ctx context.Context, o CheckOptions) (CheckResult, error) {
	s, err := e.observeToPlan(ctx)
	if err != nil {
		return CheckResult{}, err
	}
	b := e.plan(s, e.doer())
	if !o.NoPairs && !opens(b.actions) {
		e.probePairs(ctx, &s)
		b = e.plan(s, e.doer())
	}
	images := e.judgeImages(ctx, s, o)
	b.add(imageFindings(images))
	b.demote(o.Ignore)
	b.findings = diag.Reduce(b.findings)
	e.tell.findings(b.findings)
	r := e.checkResult(s, b)
	r.Images = images
	return r, e.stopped(s, b)
}

// Plan also says what Apply would do.
func (e *Engine) Plan(ctx context.Context) (PlanResult, error) {
	s, err := e.observeToPlan(ctx)
	if err != nil {
		return PlanResult{}, err
	}
	b := e.plan(s, e.doer())
	b.findings = diag.Reduce(b.findings)
	e.tell.findings(b.findings)
	return e.planResult(s, b), e.stopped(s, b)
}

// Apply observes, plans, applies, verifies and proves. The result is filled
// also when it fails.
func (e *Engine) Apply(ctx context.Context, o ApplyOptions) (ApplyResult, error) {
	start := time.Now()
	s, err := e.observeToPlan(ctx)
	if err != nil {
		return ApplyResult{}, err
	}
	if e.want.upgrade != nil && !s.cluster.there() {
		return ApplyResult{}, e.noCluster(ctx, s)
	}
	do := e.doer()
	b := e.plan(s, do)
	if !o.NoPairs && e.want.joining(s, b) && !opens(b.actions) {
		e.probePairs(ctx, &s)
		e.keepPairs(s)
		b = e.plan(s, do)
	}
	b.findings = diag.Reduce(b.findings)
	e.tell.findings(b.findings)
	b.actions = o.keep(b.actions)
	result := ApplyResult{PlanResult: e.planResult(s, b)}
	stopped := e.stopped(s, b)
	if b.out[e.want.lead(s).Name] || ctx.Err() != nil {
		return result, stopped
	}
	if o.Confirm != nil && len(b.actions) > 0 {
		if err := o.Confirm(ctx, result.PlanResult); err != nil {
			return result, err
		}
	}
	if len(b.actions) > 0 {
		held, release, err := e.lock(ctx)
		if err != nil {
			return result, err
		}
		defer release()
		ctx = held
		// From here on this is the cluster, whatever the name stood for before.
		id := e.want.clusterID(s)
		if err := e.keepID(id); err != nil {
			return result, err
		}
		e.want.pinned = id
	}
	e.tell.plan(b.actions)
	run := plan.Executor{
		Consents: consents(b.actions), Observer: e.tell,
		Replan: e.replan(do, o),
	}.Run(ctx, b.actions)
	result.Outcomes, result.Changed = outcomes(run), run.Changed()
	late := lateFindings(run)
	e.tell.findings(late)
	result.Findings = append(result.Findings, late...)
	result.Traffic, result.Seconds = e.fleet.traffic(), time.Since(start).Seconds()
	result.Nodes = e.nodeViews(e.current())
	return result, errors.Join(runError(run), stopped, lockLost(ctx))
}

// replan observes one scope again and returns what is pending there.
func (e *Engine) replan(do doer, o ApplyOptions) plan.Replan {
	return func(ctx context.Context, scope string) ([]plan.Action, error) {
		s, err := e.observeScope(ctx, scope)
		if err != nil {
			return nil, err
		}
		b := e.plan(s, do)
		b.actions = o.keep(b.actions)
		if scope != "" && b.out[scope] {
			return nil, e.stopped(s, book{findings: b.findings})
		}
		return ofScope(b.actions, scope), nil
	}
}

// consents are what the first plan asks for: whoever agreed to it agreed to those.
func consents(actions []plan.Action) map[plan.Consent]bool {
	given := map[plan.Consent]bool{}
	for _, a := range actions {
		if a.Consent != "" {
			given[a.Consent] = true
		}
	}
	return given
}
