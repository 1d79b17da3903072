package bootstrap

import (
	"context"
	"net"
	"slices"

	"github.com/gpuctl/gpuctl/bootstrap/k3s"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/internal/diag"
)

// CheckOptions say how a check looks and what it lets pass.
type CheckOptions struct {
	// NoPairs leaves out the probe between machines.
	NoPairs bool
	// Ignore are codes whose findings inform and do not stop.
	Ignore []diag.Code
	// Images are to be judged for every machine with GPUs; none judges nothing.
	Images []string
	// RegistryCA are further certificates in PEM to trust when images are read.
	RegistryCA []byte
}

// dialFunc opens connections as net.Dialer.DialContext does.
type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// joining says whether the plan makes machines join others. Only then does an
// apply probe the pairs: a second and one command on each machine, against a
// join that hangs for minutes where a port is closed. A run without joins pays nothing.
func (w wanted) joining(s sight, b book) bool {
	for _, m := range w.machines {
		if m.Name == w.lead(s).Name || s.facts[m.Name].K3s.Value.Units[unitOf(m)].Active == "active" {
			continue
		}
		if slices.ContainsFunc(b.actions, func(a plan.Action) bool { return a.ID == k3s.ActionID(m.Name) }) {
			return true
		}
	}
	return false
}

// keepPairs keeps what the pairs showed for the plans of later rounds.
func (e *Engine) keepPairs(s sight) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sight.pairs, e.sight.exposed = s.pairs, s.exposed
}

// demote makes findings of the given codes inform. What they kept out is in again.
func (b *book) demote(codes []diag.Code) {
	ignored := map[diag.Code]bool{}
	for _, c := range codes {
		if p, ok := diag.Lookup(c); ok {
			ignored[p.Code] = true
		}
	}
	blocked := map[string]bool{}
	for i, f := range b.findings {
		if ignored[f.Code] {
			b.findings[i].Severity = diag.Informs
		} else if f.Severity == diag.Blocks {
			blocked[f.Machine] = true
		}
	}
	if len(ignored) == 0 {
		return
	}
	for machine := range b.out {
		b.out[machine] = blocked[machine]
	}
}
