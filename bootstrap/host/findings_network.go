package host

import (
	"net/netip"
	"sort"
	"strings"

	"github.com/gpuctl/gpuctl/internal/diag"
)

// Codes of what a machine can live with and people should know.
const (
	CodeIPv6Only    diag.Code = "ipv6-only"
	CodeDNSFallback diag.Code = "dns-public-fallback"
	CodeDockerDrop  diag.Code = "docker-forward-drop"
	CodeSnapshotter diag.Code = "snapshotter-unsupported"
	CodeInotify     diag.Code = "inotify-low"
	CodeCrashLoop   diag.Code = "k3s-crash-loop"
)

func surroundingCodes() []diag.Code {
	return []diag.Code{CodeIPv6Only, CodeDNSFallback, CodeDockerDrop, CodeSnapshotter, CodeInotify, CodeCrashLoop}
}

// surroundings looks at networks, limits and file systems that k3s will meet.
func (c *check) surroundings() {
	if n := c.seen.Network; n.Has() {
		if n.Value.Default4 == "" && n.Value.Default6 != "" {
			c.raise(CodeIPv6Only, "the only default route is for IPv6, by %s", n.Value.Default6)
		}
		// k3s pkg/agent/config: without a usable resolver it gives pods a public one.
		if servers := n.Value.Nameservers; len(servers) > 0 && !n.Value.ResolvedFile && !usable(servers) {
			c.raise(CodeDNSFallback, "resolv.conf has %s only", strings.Join(servers, ", "))
		}
	}
	if c.seen.Firewall.Value.ForwardPolicy == "DROP" && c.running("docker") {
		c.raise(CodeDockerDrop, "the policy of FORWARD is DROP and Docker runs")
	}
	if m, ok := c.seen.Disks.Value.Mounts[c.want.dataDir()]; ok && (m.Type == "zfs" || strings.HasPrefix(m.Type, "nfs")) {
		c.as(diag.Warns, CodeSnapshotter, "%s is on %s (%s)", c.want.dataDir(), m.Type, m.On)
	}
	if n := c.seen.Sysctls.Value["fs.inotify.max_user_instances"]; n == "128" {
		c.raise(CodeInotify, "fs.inotify.max_user_instances is %s", n)
	}
	c.loops()
}

// usable: one of the resolvers can be asked by pods too.
func usable(servers []string) bool {
	for _, s := range servers {
		if a, err := netip.ParseAddr(s); err == nil && !a.IsLoopback() && !a.IsLinkLocalUnicast() && !a.IsMulticast() {
			return true
		}
	}
	return false
}

// loops: a unit that systemd starts again and again.
func (c *check) loops() {
	var names []string
	for name, u := range c.seen.K3s.Value.Units {
		if u.Sub == "auto-restart" && u.Restarts >= 3 {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	for _, name := range names {
		c.as(diag.Warns, CodeCrashLoop, "%s.service was started %d times and waits for the next", name, c.seen.K3s.Value.Units[name].Restarts)
	}
}
