package bootstrap

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/inventory"
)

// Codes of control planes of several servers.
const (
	codeEvenServers diag.Code = "etcd-even-servers"
	codeOverWAN     diag.Code = "etcd-over-wan"
)

// Round trips between servers. k3s runs etcd with a heartbeat of 500 ms and an
// election after 5 s (k3s pkg/etcd/etcd.go); etcd wants the heartbeat at half
// to one and a half round trips (https://etcd.io/docs/v3.6/tuning). Every write
// waits for one, so that much less is felt already.
const (
	tripWarns  = 50 * time.Millisecond
	tripBlocks = 250 * time.Millisecond
)

// serverFindings says what stands against the servers as a whole. It is pure.
func (w wanted) serverFindings(s sight, net Network) []diag.Finding {
	servers := w.serverList()
	if len(servers) < 2 {
		return nil
	}
	return append(append(w.evenServers(servers, s), w.farServers(servers, s, net)...), farTrips(servers, s.pairs)...)
}

// evenServers refuses servers that would make their number even: two bear the
// loss of none, as one does, and make it twice as likely. A cluster that has
// come down to an even number goes on.
func (w wanted) evenServers(servers []inventory.Machine, s sight) []diag.Finding {
	if len(servers)%2 == 1 {
		return nil
	}
	text := fmt.Sprintf("%d servers bear the loss of %d, as %d do: etcd needs more than half of them; make it %d or %d",
		len(servers), (len(servers)-1)/2, len(servers)-1, len(servers)-1, len(servers)+1)
	var joining []diag.Finding
	for _, m := range servers {
		if f, seen := s.facts[m.Name]; seen && !serverInstalled(f) {
			joining = append(joining, diag.Found(codeEvenServers, m.Name, text))
		}
	}
	if len(joining) > 0 {
		return joining
	}
	told := diag.Found(codeEvenServers, w.lead(s).Name, text)
	told.Severity = diag.Warns
	return []diag.Finding{told}
}

// farServers refuses servers that reach each other by public addresses alone.
// Those that are members already go on, and are told.
func (w wanted) farServers(servers []inventory.Machine, s sight, net Network) []diag.Finding {
	var public []string
	for _, m := range servers {
		if ip, err := netip.ParseAddr(net.Addresses[m.Name].Reach); err == nil && !isPrivate(ip) {
			public = append(public, m.Name+" "+ip.String())
		}
	}
	if len(public) == 0 {
		return nil
	}
	var out []diag.Finding
	for _, m := range servers {
		f, seen := s.facts[m.Name]
		if !seen {
			continue
		}
		found := diag.Found(codeOverWAN, m.Name, "the servers share no private network: "+strings.Join(public, ", "))
		if !serverInstalled(f) {
			found.Severity = diag.Blocks
		}
		out = append(out, found)
	}
	return out
}

// farTrips judges the round trips between servers that the probe of pairs measured.
func farTrips(servers []inventory.Machine, pairs []Pair) []diag.Finding {
	is := map[string]bool{}
	for _, m := range servers {
		is[m.Name] = true
	}
	var out []diag.Finding
	for _, p := range pairs {
		trip := 2 * p.Within // the clocks' offset is known to half a round trip
		if !is[p.From] || !is[p.To] || p.From > p.To || trip < tripWarns {
			continue
		}
		found := diag.Found(codeOverWAN, p.To, fmt.Sprintf("a round trip from %s takes %d ms", p.From, trip.Milliseconds()))
		if trip >= tripBlocks {
			found.Severity = diag.Blocks
		}
		out = append(out, found)
	}
	return out
}
