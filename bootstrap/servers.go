package bootstrap

import (
	stdnet "net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/bootstrap/k3s"
	"github.com/gpuctl/gpuctl/internal/inventory"
)

// serverList are the machines with the control plane, in the order of the file.
func (w wanted) serverList() []inventory.Machine {
	var out []inventory.Machine
	for _, m := range w.machines {
		if m.Role == inventory.Server {
			out = append(out, m)
		}
	}
	return out
}

// lead is the server that has the cluster, by which others join: one that runs
// it, else one on which it is installed, else the first of the file, which will
// make it. A server that was not looked at may have the cluster, so that no
// other one makes a second. The zero Machine where there is no server.
func (w wanted) lead(s sight) inventory.Machine {
	servers := w.serverList()
	for _, has := range []func(host.Facts) bool{serverRuns, serverInstalled} {
		for _, m := range servers {
			if f, seen := s.facts[m.Name]; seen && has(f) {
				return m
			}
		}
	}
	for _, m := range servers {
		if s.unreached[m.Name] != nil {
			return m
		}
	}
	return w.server()
}

// serverInstalled: the machine has been a server of a cluster, and may be again.
func serverInstalled(f host.Facts) bool {
	_, there := f.K3s.Value.Units["k3s"]
	return there
}

// serverDown says that every server was looked at and none runs k3s.
func (w wanted) serverDown(s sight) bool {
	for _, m := range w.serverList() {
		if f, seen := s.facts[m.Name]; !seen || serverRuns(f) {
			return false
		}
	}
	return len(w.serverList()) > 0
}

// earlier are the actions of the servers before m: k3s (re)starts on one server
// after the other, so that the others keep the majority, and one joins at a time.
func (w wanted) earlier(m inventory.Machine, s sight) []string {
	if m.Role != inventory.Server {
		return nil
	}
	var out []string
	for _, other := range w.inTurn(s) {
		if other.Name == m.Name {
			break
		}
		out = append(out, k3s.ActionID(other.Name), nodeID(other.Name))
	}
	return out
}

// inTurn are the servers in the order in which they change: the one that has the cluster first.
func (w wanted) inTurn(s sight) []inventory.Machine {
	lead := w.lead(s)
	servers := w.serverList()
	slices.SortStableFunc(servers, func(a, b inventory.Machine) int {
		switch {
		case a.Name == b.Name:
			return 0
		case a.Name == lead.Name:
			return -1
		case b.Name == lead.Name:
			return 1
		}
		return 0
	})
	return servers
}

// joinURL is by which server a machine joins, "" for the server that makes the
// cluster. What is in force stays as long as it leads to a server of the file:
// a change would restart k3s for nothing.
func (w wanted) joinURL(m inventory.Machine, s sight, net Network) string {
	if e := w.existing(); e != nil {
		return strings.TrimRight(e.Server, "/")
	}
	lead, before := w.lead(s), s.facts[m.Name].K3s.Value.InForce["server"]
	if m.Role == inventory.Agent && w.config.Spec.Kubernetes.Endpoint != "" {
		return "https://" + w.endpoint()
	}
	_, installed := s.facts[m.Name].K3s.Value.Units[unitOf(m)]
	switch {
	case m.Role == inventory.Server && installed && before == "":
		return "" // it made the cluster, or is the only one
	case before != "" && installed && w.leads(before, m, net):
		return before
	case lead.Name == m.Name:
		return ""
	}
	if at := net.Addresses[lead.Name]; at.Reach != "" {
		return serverURL(at.Reach)
	}
	return ""
}

func unitOf(m inventory.Machine) string {
	if m.Role == inventory.Server {
		return "k3s"
	}
	return "k3s-agent"
}

func serverURL(address string) string {
	return "https://" + stdnet.JoinHostPort(address, strconv.Itoa(apiPort))
}

// endpoint is the load balancer or virtual address before the servers, as host:port.
func (w wanted) endpoint() string {
	e := w.config.Spec.Kubernetes.Endpoint
	if _, _, err := stdnet.SplitHostPort(e); err == nil || e == "" {
		return e
	}
	return stdnet.JoinHostPort(trimBrackets(e), strconv.Itoa(apiPort))
}

// leads says whether a URL is that of a server of the file other than m, or may
// be: of one that is away and that nobody knows the address of now.
func (w wanted) leads(join string, m inventory.Machine, net Network) bool {
	u, err := url.Parse(join)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(w.serverList(), func(other inventory.Machine) bool {
		a, known := net.Addresses[other.Name]
		return other.Name != m.Name && (!known || slices.Contains([]string{a.Reach, a.NodeIP, a.Second, a.ExternalIP}, u.Hostname()))
	})
}

func trimBrackets(s string) string {
	if len(s) > 2 && s[0] == '[' && s[len(s)-1] == ']' {
		return s[1 : len(s)-1]
	}
	return s
}
