package bootstrap

import (
	"context"
	"fmt"
	"strings"

	"github.com/gpuctl/gpuctl/bootstrap/k3s"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/inventory"
)

// clusterID is the id that every machine of the cluster bears. What the server
// says counts; before there is one it is the id that this computer knows, or, where
// no machine bears that any more and the server is new, a fresh one: then another
// cluster begins under the name of an earlier one. A computer that knows none goes
// on with what somebody else began on the server.
func (w wanted) clusterID(s sight) string {
	if w.existing() != nil {
		return "" // it is somebody else's, who gave it no id
	}
	if s.credentials != nil && s.credentials.ClusterID != "" {
		return s.credentials.ClusterID
	}
	if w.pinned == "" && s.borne != "" {
		return s.borne
	}
	if w.pinned == "" {
		return w.fresh
	}
	server, seen := s.facts[w.lead(s).Name]
	if !seen || server.K3s.Unsure() || server.K3s.Has() || w.fresh == "" {
		return w.pinned
	}
	for _, f := range s.facts {
		if k3s.See(f, w.key).Owned(w.pinned) {
			return w.pinned
		}
	}
	return w.fresh
}

// observeID reads the id of a cluster that somebody else began: k3s does not run yet,
// and this computer knows no id. Unread it stays another cluster's.
func (e *Engine) observeID(ctx context.Context, s *sight) {
	lead := e.want.lead(*s).Name
	facts, seen := s.facts[lead]
	if e.want.pinned != "" || s.credentials != nil || s.borne != "" || !seen || !k3s.See(facts, e.want.key).Foreign(e.want.fresh) {
		return
	}
	s.borne = k3s.ReadClusterID(ctx, e.fleet.on(lead))
}

// otherCluster says why the cluster of this server is not the one this computer
// knows by the name; empty where it is, and where either has no id.
func (w wanted) otherCluster(c k3s.Credentials) string {
	if w.pinned == "" || c.ClusterID == "" || w.pinned == c.ClusterID {
		return ""
	}
	return fmt.Sprintf("it serves cluster %s, and this computer knows %s as %s", c.ClusterID, w.config.Metadata.Name, w.pinned)
}

// refused is the error of a server of another cluster.
func (w wanted) refused(why string) error {
	return &BlockedError{Findings: []diag.Finding{diag.Found("cluster-other", w.server().Name, why)}}
}

// foreign are the machines of names that bear the id of another cluster.
func (w wanted) foreign(s sight, names []string) []diag.Finding {
	id := w.clusterID(s)
	var out []diag.Finding
	for _, name := range names {
		if f, seen := s.facts[name]; seen && k3s.See(f, w.key).Foreign(id) {
			out = append(out, diag.Found("cluster-other", name, k3s.ClusterFile+" names another cluster than "+id))
		}
	}
	return out
}

// notOurs is the error of a change to machines of another cluster; nil where
// there are none.
func (w wanted) notOurs(s sight, names []string) error {
	if s.other != "" {
		return w.refused(s.other)
	}
	if found := w.foreign(s, names); len(found) > 0 {
		return &BlockedError{Findings: found}
	}
	return nil
}

// namesOr are the given names, or those of all machines.
func (w wanted) namesOr(names []string) []string {
	if len(names) > 0 {
		return names
	}
	for _, m := range w.machines {
		names = append(names, m.Name)
	}
	return names
}

// keepID remembers the cluster's id on this computer.
func (e *Engine) keepID(id string) error {
	if id == "" || id == e.want.pinned || e.settings.KeepID == nil {
		return nil
	}
	if err := e.settings.KeepID(id); err != nil {
		return fmt.Errorf("remembering the cluster's id: %w", err)
	}
	return nil
}

// knownHosts are the host keys of all listed machines: those seen now, and those
// that the server has of the others. Each line ends with the machine's name.
func (w wanted) knownHosts(s sight, listed []inventory.Machine) []byte {
	kept := map[string]string{}
	for line := range strings.Lines(string(s.keptHosts())) {
		if f := strings.Fields(line); len(f) == 4 {
			kept[f[3]] = strings.Join(f, " ")
		}
	}
	var out strings.Builder
	for _, m := range listed {
		line := kept[m.Name]
		if seen := s.hostKeys[m.Name]; seen != "" {
			line = seen + " " + m.Name
		}
		if line != "" {
			out.WriteString(line + "\n")
		}
	}
	return []byte(out.String())
}

// keepKnownHosts lays the host keys on the server, for colleagues.
func (w wanted) keepKnownHosts(s sight, do doer) []plan.Action {
	server := w.lead(s)
	if w.existing() != nil || len(s.hostKeys) == 0 {
		return nil
	}
	return k3s.KnownHostsPlan(server.Name, s.keptHosts(), w.knownHosts(s, w.config.Inventory().Machines), do.on(server.Name), do.api.keptKnownHosts)
}

// keptHosts are the host keys that the server has, as far as it was seen. What this
// run has left there counts: credentials are read once, and not before k3s runs.
func (s sight) keptHosts() []byte {
	switch {
	case s.laid != nil:
		return s.laid
	case s.credentials != nil:
		return s.credentials.KnownHosts
	}
	return nil
}

// keptKnownHosts remembers what the server has now.
func (a *api) keptKnownHosts(text []byte) { a.laid.Store(&text) }

// TrustResult is what a server knows of its cluster.
type TrustResult struct {
	Cluster string `json:"cluster"`
	// ID tells the cluster from all others; empty where it has none yet.
	ID string `json:"id,omitempty"`
	// KnownHosts are the host keys of its machines, as lines of known_hosts, by machine.
	KnownHosts map[string]string `json:"-"`
	// Kubeconfig is the administrator's.
	Kubeconfig []byte `json:"-"`
}

// Trust asks the server, and no other machine, for what a second computer needs:
// the cluster's id, the host keys of its machines and the kubeconfig. The error is a
// *BlockedError where it is the server of another cluster than this computer knows.
func (e *Engine) Trust(ctx context.Context) (TrustResult, error) {
	r := TrustResult{Cluster: e.settings.Inventory.Cluster, KnownHosts: map[string]string{}}
	if e.want.existing() != nil {
		return r, fmt.Errorf("cluster %s is not of gpuctl's making: its servers keep no host keys for colleagues", r.Cluster)
	}
	c, err := e.api.credentials(ctx)
	if err != nil {
		return r, fmt.Errorf("asking the server: %w", err)
	}
	r.ID = c.ClusterID
	for line := range strings.Lines(string(c.KnownHosts)) {
		if f := strings.Fields(line); len(f) == 4 {
			r.KnownHosts[f[3]] = strings.Join(f[:3], " ")
		}
	}
	r.Kubeconfig, err = e.Kubeconfig(ctx)
	return r, err
}
