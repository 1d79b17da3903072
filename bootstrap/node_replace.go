package bootstrap

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/internal/inventory"
	"github.com/gpuctl/gpuctl/internal/kube"
)

// ReplaceOptions name the node whose machine is another one now.
type ReplaceOptions struct {
	Node string
	ApplyOptions
}

// ReplaceNode makes a machine that came back (rebuilt, or at another address)
// the node of its name again: the old Node goes with the password of its
// machine, then the machine is brought up and proven like a new one. A machine
// whose node is Ready and alive is refused.
func (e *Engine) ReplaceNode(ctx context.Context, o ReplaceOptions) (ApplyResult, error) {
	m, ok := e.settings.Inventory.Find(o.Node)
	if !ok {
		return ApplyResult{}, &NotANodeError{o.Node}
	}
	s, err := e.observeNodes(ctx, []string{o.Node})
	if err != nil {
		return ApplyResult{}, err
	}
	if err := s.unreached[o.Node]; err != nil {
		return ApplyResult{}, fmt.Errorf("%s: %w", o.Node, err)
	}
	if err := e.want.notOurs(s, []string{o.Node}); err != nil {
		return ApplyResult{}, err
	}
	client, _, err := e.api.connect(ctx)
	if err != nil {
		return ApplyResult{}, err
	}
	password, err := client.HasNodePassword(ctx, o.Node)
	if err != nil {
		return ApplyResult{}, err
	}
	n, joined := s.cluster.state.Node(o.Node)
	if (m.Role == inventory.Server || n.Server) && len(e.want.serverList()) < 2 {
		return ApplyResult{}, &StaysError{Node: m.Name, Reason: "it is the cluster's only server, which cannot be replaced; restore a snapshot instead"}
	}
	reason, err := replaceable(m, s.facts[o.Node], n, joined)
	if err != nil {
		return ApplyResult{}, err
	}
	var first ApplyResult
	b := book{}
	if joined || password {
		b.actions = []plan.Action{forgetNode(o.Node, reason, e.doer())}
	}
	if m.Role == inventory.Server {
		b.actions, err = e.want.replaceServer(m, s, b.actions, reason, joined, e.doer())
		if err != nil {
			return ApplyResult{}, err
		}
	}
	if len(b.actions) > 0 {
		if first, err = e.onNodes(ctx, s, b, o.Confirm, nil, nil); err != nil {
			return first, err
		}
	}
	result, err := e.Apply(ctx, o.ApplyOptions)
	result.Actions = append(first.Actions, result.Actions...)
	result.Outcomes = append(first.Outcomes, result.Outcomes...)
	result.Changed += first.Changed
	result.Seconds += first.Seconds
	return result, err
}

// replaceable says why the node of a machine that came back may be deleted, or
// why not: a node that is alive is not thrown away by mistake. It is pure.
func replaceable(m inventory.Machine, f host.Facts, n kube.Node, joined bool) (string, error) {
	running := f.K3s.Value.Units[unitOf(m)].Active == "active"
	here := owns(f, n.InternalIP) || (n.ExternalIP != "" && n.ExternalIP == m.Host)
	switch {
	case !joined:
		return "the password of an earlier machine of this name is left over", nil
	case !n.Ready:
		return "its machine is another one now, and the node is not Ready: " + n.Reason, nil
	case here && running:
		return "", &StaysError{Node: m.Name, Reason: "the node is Ready on this very machine; there is nothing to replace"}
	case here:
		return "its machine came back without k3s; that the node still counts as Ready is out of date", nil
	}
	return "", &StaysError{Node: m.Name, Reason: fmt.Sprintf("its node is Ready at %s, which is not an address of %s: another machine runs under this name. gpuctl node remove it first; one that is gone stops being Ready within a minute", n.InternalIP, m.Host)}
}

// owns says whether an address is one of the machine's.
func owns(f host.Facts, address string) bool {
	want, err := netip.ParseAddr(address)
	if err != nil {
		return false
	}
	for _, i := range f.Network.Value.Interfaces {
		for _, a := range i.Addresses {
			if p, err := netip.ParsePrefix(a); err == nil && p.Addr() == want {
				return true
			}
		}
	}
	return false
}
