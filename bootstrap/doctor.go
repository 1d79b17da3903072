package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gpuctl/gpuctl/bootstrap/nvidia"
	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/doctor"
	"github.com/gpuctl/gpuctl/internal/kube"
)

// DoctorOptions say how far the doctor goes.
type DoctorOptions struct {
	// NoPairs leaves out the probe between machines.
	NoPairs bool
	// Cordon keeps new pods from nodes whose GPUs are at fault, and notes the
	// evidence on them.
	Cordon bool
}

// Half is one of the two ways to look at a cluster.
type Half struct {
	// Name is ssh or api.
	Name string `json:"name"`
	// State is whole, partial (some machines answer), dead or unused (no machine is named).
	State string `json:"state"`
	// Why is what each silent part says.
	Why []string `json:"why,omitempty"`
}

// DoctorResult is what was found in a living cluster, root causes alone.
type DoctorResult struct {
	Cluster  string         `json:"cluster"`
	Halves   []Half         `json:"halves"`
	Machines []MachineView  `json:"machines"`
	Nodes    []NodeView     `json:"nodes"`
	Findings []diag.Finding `json:"findings"`
	// Consequences are findings that a root cause among Findings explains.
	Consequences []diag.Finding `json:"consequences,omitempty"`
	Pairs        []Pair         `json:"pairs,omitempty"`
	// Pods are those that ask for GPUs and do not run or do not get on, each with its reason.
	Pods []doctor.Reason `json:"pods"`
	// Reports are for whoever rents the machines out: what is broken on which.
	Reports []FaultReport `json:"reports,omitempty"`
	// Cordoned are nodes that this run closed to new pods.
	Cordoned []string `json:"cordoned,omitempty"`

	// seen is what a support bundle is made of.
	seen patient
}

// silentAPI says why nothing is known from the API.
func silentAPI(failed error) []diag.Finding {
	if failed == nil {
		return nil
	}
	return []diag.Finding{diag.Found("api-not-there", "", failed.Error())}
}

// patient is everything the doctor saw, for the bundle.
type patient struct {
	sight    sight
	objects  kube.Objects
	tails    map[string]string
	journals map[string][]string
}

// Doctor looks at machines, k3s, GPU Operator, nodes, pods and events at once
// and says what is wrong, causes before consequences. It goes on where SSH or
// the API is dead and says which. The error is that of Check; the result is
// filled also then.
func (e *Engine) Doctor(ctx context.Context, o DoctorOptions) (DoctorResult, error) {
	s, err := e.observe(ctx)
	if err != nil && ctx.Err() != nil {
		return DoctorResult{}, err
	}
	p := patient{sight: s, journals: map[string][]string{}}
	var together sync.WaitGroup
	if !o.NoPairs {
		together.Go(func() { e.probePairs(ctx, &p.sight) })
	}
	var failed error
	together.Go(func() { p.objects, p.tails, failed = e.objects(ctx, s) })
	together.Go(func() { p.journals = e.journals(ctx, s) })
	together.Wait()

	b := e.plan(p.sight, e.doer())
	found := append(b.findings, k3sTrouble(e.want.machines, p)...)
	r := DoctorResult{
		Cluster: e.settings.Inventory.Cluster, Halves: halves(e.want.machines, s, failed), Pods: []doctor.Reason{},
		Machines: e.checkResult(s, b).Machines, Nodes: e.nodeViews(s), Pairs: p.sight.pairs, seen: p,
	}
	if failed == nil {
		seen := doctor.Seen{Objects: p.objects, Tails: p.tails, GPUNodes: e.gpuNodes(s), Faults: faults(found)}
		seen.SecondEngines = secondEngines(s)
		seen.Images, seen.Hosts = e.podImages(ctx, s, p.objects)
		seen.Unfit, seen.PluginConfigs = doctor.UnfitBy(seen.Images, seen.Hosts), e.pluginConfigs(ctx)
		found, r.Pods = append(found, doctor.Findings(seen)...), doctor.Reasons(seen)
	}
	found = append(found, silentAPI(failed)...)
	r.Findings, r.Consequences = causesAndConsequences(found)
	r.Reports = e.reports(r, time.Now())
	e.tell.findings(r.Findings)
	if o.Cordon && failed == nil {
		r.Cordoned, err = e.cordonFaulty(ctx, r)
	}
	return r, errors.Join(err, e.stopped(s, book{findings: r.Findings}))
}

// objects asks the API for everything the doctor reads.
func (e *Engine) objects(ctx context.Context, s sight) (kube.Objects, map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, 45*time.Second)
	defer cancel()
	client, err := e.wayIn(ctx, s)
	if err != nil {
		return kube.Objects{}, nil, err
	}
	o, err := client.Objects(ctx)
	if err != nil {
		return o, nil, fmt.Errorf("asking the cluster: %w", err)
	}
	return o, client.Tails(ctx, o.Pods), nil
}

// wayIn is a client of the API: through the server's SSH connection, or, where
// the server is not reached by SSH, straight with the kubeconfig that was kept.
func (e *Engine) wayIn(ctx context.Context, s sight) (*kube.Client, error) {
	if s.cluster.there() {
		client, _, err := e.api.connect(ctx)
		return client, err
	}
	kept, lost := e.settings.Kubeconfig, s.unreached[e.want.lead(s).Name]
	if lost == nil || len(kept) == 0 {
		return nil, fmt.Errorf("asking the cluster: %s", s.cluster.state.NoAPI)
	}
	client, err := kube.Connect(kept, nil)
	if err != nil {
		return nil, fmt.Errorf("asking the cluster without SSH: %w", err)
	}
	return client, nil
}

// gpuNodes are machines with GPUs: seen there, or promised where they could not be looked at.
func (e *Engine) gpuNodes(s sight) []string {
	var out []string
	for _, m := range e.want.machines {
		f, seen := s.facts[m.Name]
		if seen && len(nvidia.GPUs(f)) > 0 || !seen && m.GPUs != nil && *m.GPUs > 0 {
			out = append(out, m.Name)
		}
	}
	if len(e.want.machines) == 0 {
		for _, m := range e.want.foreignNodes(s) {
			out = append(out, m.Name)
		}
	}
	return out
}

// journals reads the end of k3s's log on every machine that has it.
func (e *Engine) journals(ctx context.Context, s sight) map[string][]string {
	var mu sync.Mutex
	all := map[string][]string{}
	var group errgroup.Group
	for _, m := range e.want.machines {
		if len(s.facts[m.Name].K3s.Value.Units) == 0 {
			continue
		}
		group.Go(func() error {
			lines, err := readJournal(ctx, e.fleet.on(m.Name))
			if err != nil {
				lines = []string{"the log could not be read: " + err.Error()}
			}
			mu.Lock()
			defer mu.Unlock()
			all[m.Name] = lines
			return nil
		})
	}
	_ = group.Wait() // a log that could not be read says so itself
	return all
}

// causesAndConsequences parts findings, those that block first.
func causesAndConsequences(found []diag.Finding) (causes, rest []diag.Finding) {
	found = once(found)
	causes = diag.Reduce(found)
	kept := map[diag.Finding]bool{}
	for _, f := range causes {
		kept[f] = true
	}
	for _, f := range found {
		if !kept[f] {
			rest = append(rest, f)
		}
	}
	rank := map[diag.Severity]int{diag.Blocks: 0, diag.Warns: 1, diag.Informs: 2}
	slices.SortStableFunc(causes, func(a, b diag.Finding) int { return rank[a.Severity] - rank[b.Severity] })
	if causes == nil {
		causes = []diag.Finding{}
	}
	return causes, rest
}

// once drops what two ways of looking found alike: the same code at the same
// machine keeps the first evidence and takes on the others.
func once(found []diag.Finding) []diag.Finding {
	var out []diag.Finding
	for _, f := range found {
		i := slices.IndexFunc(out, func(have diag.Finding) bool { return have.Code == f.Code && have.Machine == f.Machine })
		switch {
		case i < 0:
			out = append(out, f)
		case !strings.Contains(out[i].Evidence, f.Evidence):
			out[i].Evidence += "; " + f.Evidence
		}
	}
	return out
}
