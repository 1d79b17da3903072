package bootstrap

import (
	"net/netip"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/internal/inventory"
)

// Pair is what was seen of the way from one machine to another. The other
// direction is a Pair of its own: firewalls are not symmetric.
type Pair struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Unknown is why this way was not probed, as a whole or in part.
	Unknown string `json:"unknown,omitempty"`
	// UDP says whether datagrams to the overlay's port arrive; nil where that is not known.
	UDP     *bool `json:"udp,omitempty"`
	UDPPort int   `json:"udpPort,omitempty"`
	// Size is the largest IP packet that arrived whole, MTU what the sender's
	// interface takes; bytes.
	Size int `json:"size,omitempty"`
	MTU  int `json:"mtu,omitempty"`
	// TCP are ports of To: "open", or why they are not reached. Unknown ones are not in it.
	TCP map[int]string `json:"tcp,omitempty"`
	// Offset is To's clock minus From's, give or take Within, which is 0 where it is not known.
	Offset time.Duration `json:"offset,omitempty"`
	Within time.Duration `json:"within,omitempty"`
}

// Exposed is a port that answers the computer gpuctl runs on, at a public address.
type Exposed struct {
	Machine string `json:"machine"`
	Address string `json:"address"`
	Proto   string `json:"proto"`
	Port    int    `json:"port"`
}

// allPairs is up to how many machines every pair is probed: above that the
// number of pairs grows faster than what they teach.
const allPairs = 16

const (
	apiPort     = 6443
	kubeletPort = 10250
	etcdPort    = 2379
	etcdPeers   = 2380
)

// pairPlan is who probes whom. Machines are numbered from 1.
type pairPlan struct {
	machines []inventory.Machine
	requests []host.PairRequest
	public   []string // by machine: its public address, "" for none
}

// planPairs is pure. Machines without a known address take no part.
func planPairs(mark string, machines []inventory.Machine, s sight, network Network) pairPlan {
	var p pairPlan
	for _, m := range machines {
		if _, seen := s.facts[m.Name]; seen && network.Addresses[m.Name].Reach != "" {
			p.machines = append(p.machines, m)
		}
	}
	for i, m := range p.machines {
		r := host.PairRequest{
			Mark: mark, Self: i + 1, UDP: overlayPort(network.Backend), Listen: listens(m, p.machines),
			Sizes: packetSizes(mtuOf(s.facts[m.Name], network.Addresses[m.Name])),
		}
		for j, other := range p.machines {
			if i != j && probed(i, j, p.machines) {
				r.Peers = append(r.Peers, host.Peer{ID: j + 1, Address: network.Addresses[other.Name].Reach, TCP: portsFor(m, other)})
			}
		}
		p.requests = append(p.requests, r)
		p.public = append(p.public, publicAddress(m, network.Addresses[m.Name]))
	}
	return p
}

// probed: all pairs of a few machines; of many, servers with everyone and a ring.
func probed(i, j int, machines []inventory.Machine) bool {
	n := len(machines)
	return n <= allPairs || machines[i].Role == inventory.Server || machines[j].Role == inventory.Server ||
		(i+1)%n == j || (j+1)%n == i
}

// portsFor are the TCP ports of a machine that another needs. Sources: k3s,
// installation/requirements, inbound rules.
func portsFor(from, to inventory.Machine) []int {
	ports := []int{kubeletPort}
	if to.Role == inventory.Server {
		ports = append(ports, apiPort)
		if from.Role == inventory.Server {
			ports = append(ports, etcdPort, etcdPeers)
		}
	}
	return ports
}

func listens(m inventory.Machine, all []inventory.Machine) []int {
	union := map[int]bool{}
	var out []int
	for _, other := range all {
		if other.Name == m.Name {
			continue
		}
		for _, port := range portsFor(other, m) {
			if !union[port] {
				union[port] = true
				out = append(out, port)
			}
		}
	}
	return out
}

// overlayPort is flannel's, 0 where packets travel as they are.
func overlayPort(backend string) int {
	switch backend {
	case "vxlan":
		return 8472
	case "wireguard-native":
		return 51820
	}
	return 0
}

func mtuOf(f host.Facts, a Address) int {
	for _, i := range f.Network.Value.Interfaces {
		if i.Name == a.Interface {
			return i.MTU
		}
	}
	return 0
}

// packetSizes are a small packet, the largest one of the interface and the
// usual limits of tunnels and clouds between the two.
func packetSizes(mtu int) []int {
	sizes := []int{200}
	for _, size := range []int{1280, 1400, 1420, 1450, 1460, 1500, 8900} {
		if size < mtu {
			sizes = append(sizes, size)
		}
	}
	if mtu > 200 {
		sizes = append(sizes, mtu)
	}
	return sizes
}

// publicAddress is where the world reaches the machine, "" where it does not.
func publicAddress(m inventory.Machine, a Address) string {
	if m.Jump != "" {
		return ""
	}
	for _, text := range []string{a.ExternalIP, m.Host, a.NodeIP} {
		ip, err := netip.ParseAddr(text)
		if err == nil && ip.IsGlobalUnicast() && !isPrivate(ip) {
			return text
		}
	}
	return ""
}

// pairsOf joins what all machines saw to one value for every way. seen is by
// machine, as in the plan.
func (p pairPlan) pairsOf(seen []host.PairSight, s sight, network Network) []Pair {
	var out []Pair
	for i, r := range p.requests {
		for _, peer := range r.Peers {
			j := peer.ID - 1
			pair := Pair{From: p.machines[i].Name, To: p.machines[j].Name}
			from, to := seen[i], seen[j]
			switch {
			case !from.Ready:
				pair.Unknown = whyNot(p.machines[i].Name, from)
			case !to.Ready:
				pair.Unknown = whyNot(p.machines[j].Name, to)
			}
			if from.Ready {
				pair.TCP = reached(peer, from, to, s.facts[pair.To])
			}
			if r.UDP != 0 && from.Ready && to.Ready {
				there, arrived := to.UDP[r.Self]
				pair.UDP, pair.UDPPort, pair.Size = &arrived, r.UDP, there.Size
				pair.MTU = mtuOf(s.facts[pair.From], network.Addresses[pair.From])
				if back, ok := from.UDP[peer.ID]; ok && arrived {
					pair.Offset, pair.Within = (there.Delay-back.Delay)/2, max((there.Delay+back.Delay)/2, time.Millisecond)
				}
			}
			out = append(out, pair)
		}
	}
	return out
}

// reached leaves out ports of which nothing can be said: closed ones where nobody listened.
func reached(peer host.Peer, from, to host.PairSight, facts host.Facts) map[int]string {
	answers := map[int]string{}
	for _, port := range peer.TCP {
		answer := from.TCP[peer.ID][port]
		if answer == "open" || answer != "" && (to.Ready || listening(facts, port)) {
			answers[port] = answer
		}
	}
	return answers
}

func listening(f host.Facts, port int) bool {
	for _, l := range f.Ports.Value {
		if l.Proto == "tcp" && l.Port == port {
			return true
		}
	}
	return false
}

func whyNot(machine string, s host.PairSight) string {
	if s.Failed != "" {
		return machine + ": " + s.Failed
	}
	return machine + " did not begin in time"
}
