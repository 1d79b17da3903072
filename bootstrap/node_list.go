package bootstrap

import (
	"context"
	"time"

	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/inventory"
	"github.com/gpuctl/gpuctl/internal/kube"
)

// NodeState is where a machine of gpuctl.yaml and its node stand.
type NodeState string

const (
	// NodeIsReady: a listed machine that has joined and is Ready.
	NodeIsReady NodeState = "ready"
	// NodeNotReady: it has joined and is not Ready; Why says why.
	NodeNotReady NodeState = "not-ready"
	// NodeMissing: the machine is in gpuctl.yaml and no node.
	NodeMissing NodeState = "missing"
	// NodeUnlisted: the node is in the cluster and not in gpuctl.yaml.
	NodeUnlisted NodeState = "unlisted"
	// NodeUnknown: the cluster did not answer.
	NodeUnknown NodeState = "unknown"
)

// NodeEntry is one machine and its node, side by side.
type NodeEntry struct {
	NodeView
	State NodeState `json:"state"`
	// Host is how the machine is reached; empty for a node that is not listed.
	Host   string `json:"host,omitempty"`
	Group  string `json:"group,omitempty"`
	Joined bool   `json:"joined"`
	// Cordoned says that new pods are kept away.
	Cordoned bool `json:"cordoned"`
	// Promised is how many GPUs the owner was promised, where the file says so.
	Promised *int `json:"promised,omitempty"`
	// NotReadySince is when the node stopped being Ready.
	NotReadySince *time.Time `json:"notReadySince,omitempty"`
}

// NodeListResult is the file and the cluster side by side.
type NodeListResult struct {
	Cluster string      `json:"cluster"`
	Nodes   []NodeEntry `json:"nodes"`
}

// ListNodes compares the machines of the file with the nodes of the cluster. It
// asks the API alone. Where that does not answer every state is unknown, and the
// error says why.
func (e *Engine) ListNodes(ctx context.Context) (NodeListResult, error) {
	s := sight{}
	e.observeCluster(ctx, &s)
	r := NodeListResult{Cluster: e.settings.Inventory.Cluster, Nodes: nodeEntries(e.settings.Inventory.Machines, s.cluster.state, e.nodeViews(s))}
	if !s.cluster.there() {
		return r, e.noCluster(ctx, s)
	}
	return r, nil
}

// nodeEntries lists the machines in the order of the file, then the nodes that are not in it.
func nodeEntries(machines []inventory.Machine, state kube.State, views []NodeView) []NodeEntry {
	byName := map[string]NodeView{}
	for _, v := range views {
		byName[v.Name] = v
	}
	entries := []NodeEntry{}
	for _, m := range machines {
		v, joined := byName[m.Name]
		e := NodeEntry{NodeView: v, State: NodeMissing, Host: m.Host, Group: m.Group, Promised: m.GPUs, Joined: joined}
		e.Name, e.Role = m.Name, string(m.Role)
		switch {
		case state.NoAPI != "":
			e.State = NodeUnknown
		case joined && v.Ready:
			e.State = NodeIsReady
		case joined:
			e.State = NodeNotReady
		}
		entries = append(entries, e)
	}
	for _, v := range views {
		if v.Unlisted {
			entries = append(entries, NodeEntry{NodeView: v, State: NodeUnlisted, Joined: true})
		}
	}
	for i := range entries {
		if n, ok := state.Node(entries[i].Name); ok {
			entries[i].Cordoned = n.Cordoned
			if !n.Ready {
				since := n.Since.UTC()
				entries[i].NotReadySince = &since
			}
		}
	}
	return entries
}

// unlisted are findings about nodes that the file does not name. They inform:
// nothing is ever removed because it is not listed.
func (w wanted) unlisted(state kube.State) []diag.Finding {
	if w.existing() != nil {
		return nil // the cluster is somebody else's, and so are its other nodes
	}
	listed := w.config.Inventory()
	var out []diag.Finding
	for _, n := range state.Nodes {
		if _, ok := listed.Find(n.Name); !ok {
			ready := "Ready"
			if !n.Ready {
				ready = "not Ready"
			}
			out = append(out, diag.Found("node-unlisted", n.Name, "it is a node of the cluster ("+ready+") and not in gpuctl.yaml; apply leaves it alone"))
		}
	}
	return out
}

// Reach connects to a machine and says why that is not possible, as a
// *remote.ConnectError.
func (e *Engine) Reach(ctx context.Context, machine string) error {
	m := e.fleet.on(machine)
	if m == nil {
		return &NotANodeError{machine}
	}
	_, err := m.connect(ctx)
	return err
}
