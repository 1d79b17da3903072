package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/charts"
	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/inventory"
	"github.com/gpuctl/gpuctl/internal/kube"
)

const gpuResource = "nvidia.com/gpu"

// productLabel is the label that GPU feature discovery gives a node.
const productLabel = "nvidia.com/gpu.product"

// Status asks the cluster, and no machine but the server on the way to it and
// those whose GPUs the cluster does not name yet.
func (e *Engine) Status(ctx context.Context) (StatusResult, error) {
	s := sight{}
	e.observeCluster(ctx, &s)
	r := StatusResult{
		Cluster: e.settings.Inventory.Cluster, RuntimePath: e.want.runtimePath(),
		PodLines: podLines(e.want.runtimePath()), Nodes: []NodeView{}, Operator: "absent",
	}
	if !s.cluster.there() {
		r.Operator = "unknown"
		for _, m := range e.want.machines {
			r.Missing = append(r.Missing, m.Name)
		}
		return r, e.noCluster(ctx, s)
	}
	s.facts = e.unlabelled(ctx, s.cluster.state)
	r.Nodes, r.Findings = e.nodeViews(s), slices.Concat(e.want.unlisted(s.cluster.state), unhealthy(s.cluster.state), leaving(s.cluster.state))
	for _, m := range e.want.machines {
		if _, joined := s.cluster.state.Node(m.Name); !joined {
			r.Missing = append(r.Missing, m.Name)
		}
	}
	if s.cluster.state.Policy.Exists {
		r.Operator = "not ready: " + s.cluster.state.Policy.Why()
		if s.cluster.state.Policy.Ready() {
			r.Operator = "ready"
		}
	}
	return r, nil
}

// modelWait bounds what status spends on asking machines for their GPUs' model.
const modelWait = 20 * time.Second

// unlabelled looks at the machines of nodes whose GPUs have no label yet: feature
// discovery takes up to a minute to put it there. A machine that does not answer
// is left out; its node is shown without the model.
func (e *Engine) unlabelled(ctx context.Context, state kube.State) map[string]host.Facts {
	ctx, cancel := context.WithTimeout(ctx, modelWait)
	defer cancel()
	var mu sync.Mutex
	var group sync.WaitGroup
	found := map[string]host.Facts{}
	for _, n := range state.Nodes {
		m, listed := e.settings.Inventory.Find(n.Name)
		if !listed || n.Labels[productLabel] != "" || n.Capacity[gpuResource] == 0 && !n.HasTaint(charts.UnprovenTaint) {
			continue
		}
		group.Go(func() {
			facts, err := host.Probe(ctx, e.fleet.on(m.Name), e.want.probe(m))
			if err != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			found[m.Name] = facts
		})
	}
	group.Wait()
	return found
}

// unhealthy are GPUs that the device plugin has taken out of service; what is
// wrong with them the machine says, to the doctor.
func unhealthy(state kube.State) []diag.Finding {
	var out []diag.Finding
	for _, n := range state.Nodes {
		for _, resource := range slices.Sorted(maps.Keys(n.Capacity)) {
			if have, all := n.Allocatable[resource], n.Capacity[resource]; have < all {
				out = append(out, diag.Found("gpu-unhealthy", n.Name, fmt.Sprintf("%d of %d %s are allocatable", have, all, resource)))
			}
		}
	}
	return out
}

// noCluster says why there is no API, as the error of the connection where that is the reason.
func (e *Engine) noCluster(ctx context.Context, s sight) error {
	if e.want.existing() != nil {
		return e.want.noExistingAPI(s)
	}
	err := s.cluster.untold
	if err == nil { // it may not have been asked
		_, err = e.api.credentials(ctx)
	}
	if err != nil {
		return fmt.Errorf("asking the cluster: %w", err)
	}
	return errors.New("asking the cluster: " + s.cluster.state.NoAPI)
}

// podLines are what a user's pod needs to get a GPU.
func podLines(runtimePath string) []string {
	lines := []string{"resources: {limits: {" + gpuResource + ": 1}}"}
	if runtimePath == charts.RuntimeClass {
		lines = append(lines, "runtimeClassName: nvidia")
	}
	return lines
}

func (e *Engine) nodeViews(s sight) []NodeView {
	out := []NodeView{}
	for _, n := range s.cluster.state.Nodes {
		v := NodeView{
			Name: n.Name, Role: "agent", Ready: n.Ready, Why: n.Reason, Version: n.Kubelet, Address: n.InternalIP,
			Model: n.Labels[productLabel],
		}
		v.countGPUs(n, s.cluster.state)
		if n.Server {
			v.Role = "server"
		}
		if listed := gpuViews(s.facts[n.Name]); v.Model == "" && len(listed) > 0 {
			v.Model = listed[0].Model // the label comes a while after the GPUs
		}
		if proof, ok := proofOf(n); ok && !n.HasTaint(charts.UnprovenTaint) {
			at := proof.Time
			v.Proven, v.ProvenAt = true, &at
		}
		v.SpotNotice = n.Annotations[spotNotice]
		_, listed := e.settings.Inventory.Find(n.Name)
		v.Unlisted = !listed
		out = append(out, v)
	}
	return out
}

// Kubeconfig is the administrator's kubeconfig, with the cluster's name and an
// address of the server that can be reached from here.
func (e *Engine) Kubeconfig(ctx context.Context) ([]byte, error) {
	c, err := e.api.credentials(ctx)
	if err != nil {
		return nil, err
	}
	if e.want.existing() != nil {
		if e.want.blind() {
			return nil, e.want.noExistingAPI(sight{})
		}
		return kube.Rename(c.Kubeconfig, e.settings.Inventory.Cluster, "")
	}
	address, err := e.serverAddress(ctx)
	if err != nil {
		return nil, err
	}
	return kube.Rename(c.Kubeconfig, e.settings.Inventory.Cluster, "https://"+address)
}

// serverAddress is host:port of the API for the user: the address the server is
// reached by, or the node's own where that is a name of ssh_config only.
func (e *Engine) serverAddress(ctx context.Context) (string, error) {
	if endpoint := e.want.endpoint(); endpoint != "" {
		return endpoint, nil
	}
	server := e.api.order()[0]
	if isAddress(server) {
		return hostPort(server.Host), nil
	}
	client, _, err := e.api.connect(ctx)
	if err != nil {
		return "", err
	}
	state, err := client.Snapshot(ctx)
	if err != nil {
		return "", err
	}
	n, ok := state.Node(server.Name)
	switch {
	case ok && n.ExternalIP != "":
		return hostPort(n.ExternalIP), nil
	case ok && n.InternalIP != "":
		return hostPort(n.InternalIP), nil
	}
	return "", fmt.Errorf("no address of server %s is known: %s", server.Name, state.NoAPI)
}

func isAddress(m inventory.Machine) bool {
	_, err := netip.ParseAddr(m.Host)
	return err == nil || strings.Contains(m.Host, ".")
}

func hostPort(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]:6443"
	}
	return host + ":6443"
}
