package bootstrap

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/k3s"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/inventory"
	"github.com/gpuctl/gpuctl/internal/kube"
)

func (l leaver) server() bool { return l.node.Server || l.machine.Role == inventory.Server }

// observeLeaving looks at the machines that leave, and at all where one of them
// is a server: others may have joined by it.
func (e *Engine) observeLeaving(ctx context.Context, names []string) (sight, error) {
	if !slices.ContainsFunc(names, func(n string) bool { return slices.Contains(e.want.serverNames(), n) }) {
		return e.observeNodes(ctx, names)
	}
	s, err := e.observe(ctx)
	if err == nil && !s.cluster.there() {
		err = e.noCluster(ctx, s)
	}
	return s, err
}

// readyServers says of each server of the cluster whether it is Ready.
func readyServers(state kube.State) map[string]bool {
	out := map[string]bool{}
	for _, n := range state.Nodes {
		if n.Server {
			out[n.Name] = n.Ready
		}
	}
	return out
}

// leaving are the names in the order in which they leave: agents, then servers
// so that etcd keeps its majority at every step. The error is a *kube.QuorumError
// where it could not. It is pure.
func (w wanted) leaving(names []string, s sight) ([]string, error) {
	servers := readyServers(s.cluster.state)
	var agents, leave []string
	for _, n := range names {
		if _, is := servers[n]; is {
			leave = append(leave, n)
		} else {
			agents = append(agents, n)
		}
	}
	if len(leave) == 0 || len(servers) < 2 {
		return names, nil // a lone server is refused by its own reason
	}
	order, _, err := kube.RemovalOrder(servers, leave)
	return append(agents, order...), err
}

// fewServers warns where the servers that are left bear no loss.
func (w wanted) fewServers(names []string, s sight) []diag.Finding {
	servers := readyServers(s.cluster.state)
	leave := slices.DeleteFunc(slices.Clone(names), func(n string) bool { _, is := servers[n]; return !is })
	if len(leave) == 0 {
		return nil
	}
	_, warning, err := kube.RemovalOrder(servers, leave)
	if err != nil || warning == "" {
		return nil
	}
	found := diag.Found(codeEvenServers, "", warning)
	found.Severity = diag.Warns
	return []diag.Finding{found}
}

// inTurnOf lets a server leave after all before it, and first makes those that
// joined by it join by one that stays.
func (w wanted) inTurnOf(l leaver, actions, before []plan.Action, s sight, leaving []string, do doer) []plan.Action {
	if !l.server() || len(actions) == 0 {
		return actions
	}
	var needs []string
	for _, a := range before {
		needs = append(needs, a.ID)
	}
	moves := needing(w.moves(l, s, leaving, do), needs)
	for _, a := range moves {
		needs = append(needs, a.ID)
	}
	return append(moves, needing(actions, needs)...)
}

// moves are the changes of machines that have the leaving server in their
// configuration. They are pure plans of a wish without the machines that leave.
func (w wanted) moves(l leaver, s sight, leaving []string, do doer) []plan.Action {
	rest := w
	rest.machines = slices.DeleteFunc(slices.Clone(w.machines), func(m inventory.Machine) bool { return slices.Contains(leaving, m.Name) })
	net, all := rest.network(s), w.network(s)
	a := all.Addresses[l.name]
	own := []string{serverURL(a.Reach), serverURL(a.NodeIP)}
	var out []plan.Action
	var turn []string
	for _, m := range rest.machines {
		f, seen := s.facts[m.Name]
		if !seen || !slices.Contains(own, f.K3s.Value.InForce["server"]) {
			continue
		}
		actions, _ := k3s.Plan(rest.k3s(m, s, net), k3s.See(f, w.key), k3s.Access{On: do.on(m.Name), Join: do.credentials})
		if m.Role == inventory.Server {
			actions = needing(actions, turn)
			turn = append(turn, k3s.ActionID(m.Name))
		}
		out = append(out, actions...)
	}
	return out
}

// noRestart keeps k3s of a leaving server from coming back by itself.
func noRestart(node string, needs []string, do doer) plan.Action {
	return plan.Action{
		ID: node + "/k3s-leaves", Machine: node, Title: "keep k3s from starting again", Needs: needs, Timeout: time.Minute,
		Reason: "a server that leaves etcd would join anew when systemd starts it again",
		Apply:  func(ctx context.Context, _ plan.Say) error { return k3s.KeepEnded(ctx, do.on(node)) },
	}
}

// forgetServer deletes a server's node, and waits until its member of etcd is gone.
func (w wanted) forgetServer(node, reason string, do doer) plan.Action {
	a := forgetNode(node, reason, do)
	a.Title, a.Timeout = "delete the node, its password and its member of etcd", 3*time.Minute
	del := a.Apply
	a.Apply = func(ctx context.Context, say plan.Say) error {
		if err := do.api.majority(ctx, node); err != nil {
			return err
		}
		if err := del(ctx, say); err != nil {
			return err
		}
		return kube.Wait(ctx, time.Second, 2*time.Minute, do.api.memberGone(node), say)
	}
	return a
}

// majority looks once more, right before a member is removed: a server that
// failed since the plan was made changes the sum.
func (a *api) majority(ctx context.Context, leaving string) error {
	client, _, err := a.connect(ctx)
	if err != nil {
		return err
	}
	state, err := client.Snapshot(ctx)
	if err != nil || state.NoAPI != "" {
		return errors.Join(err, errors.New(state.NoAPI))
	}
	if _, there := state.Node(leaving); !there {
		return nil
	}
	_, _, err = kube.RemovalOrder(readyServers(state), []string{leaving})
	return err
}

// memberGone is the condition that etcd has no member of a node. A cluster on sqlite has none.
func (a *api) memberGone(node string) kube.Condition {
	return func(ctx context.Context) (bool, string, error) {
		if a.engine.want.config.Spec.Kubernetes.Datastore == k3s.SQLite {
			return true, "", nil
		}
		members, err := a.members(ctx)
		if err != nil {
			return false, err.Error(), nil
		}
		for _, m := range members {
			if m.Node() == node {
				return false, "etcd still has member " + m.Name, nil
			}
		}
		return true, "", nil
	}
}

// members lists the members of etcd, through any server.
func (a *api) members(ctx context.Context) ([]k3s.Member, error) {
	c, err := a.credentials(ctx)
	if err != nil {
		return nil, err
	}
	supervisor, err := k3s.NewSupervisor(c, a.through)
	if err != nil {
		return nil, err
	}
	return supervisor.Members(ctx)
}

// replaceServer makes room for a server that comes back as another machine: its
// member leaves while the others have the majority, and what an earlier cluster
// left on the machine goes. It is pure.
func (w wanted) replaceServer(m inventory.Machine, s sight, forget []plan.Action, reason string, joined bool, do doer) ([]plan.Action, error) {
	servers := readyServers(s.cluster.state)
	var actions []plan.Action
	var needs []string
	if len(forget) > 0 {
		a := forget[0]
		if joined {
			servers[m.Name] = false // the machine it was is gone, whatever its node still says
			if _, _, err := kube.RemovalOrder(servers, []string{m.Name}); err != nil {
				return nil, err
			}
			a = w.forgetServer(m.Name, reason, do)
		}
		actions, needs = append(actions, a), []string{a.ID}
	}
	seen := k3s.See(s.facts[m.Name], w.key)
	if len(seen.Units) > 0 {
		actions = append(actions, k3s.ResetPlan(w.k3s(m, s, Network{}), seen, k3s.ResetOptions{}, do.on(m.Name), needs...)...)
	}
	return actions, nil
}
