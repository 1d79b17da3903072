//go:build lab && full

package e2e_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/e2e/lab/machine"
	"github.com/gpuctl/gpuctl/e2e/scene"
)

// TestFullPlacesChange: both machines come back from a stop with other private
// addresses, which an apply mends; a container engine that was there stays as
// it is; a packet filter that drops is told.
func TestFullPlacesChange(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "moved")
	a, b := outside(s)
	// What stands for Docker is a process and a socket of its name.
	s.Exec(b, `cp /bin/sleep /usr/local/bin/dockerd
setsid /usr/local/bin/dockerd 100000 >/dev/null 2>&1 </dev/null &
mkdir -p /run /etc/docker; echo '{"data-root": "/srv/docker"}' >/etc/docker/daemon.json; : >/run/docker.sock`)
	s.Write(scene.Cluster{
		Members: []scene.Member{{Machine: a, GPUs: 1}, {Machine: b, GPUs: 1}},
		// The membership of etcd is bound to an address; the lab's etcd does not check it.
		Spec: map[string]any{"kubernetes": map[string]any{"datastore": "sqlite"}},
	})
	r := s.Must(0, "check", "-v")
	mentions(t, "a look at a machine with Docker", r.Stdout+r.Stderr, "second-container-engine")
	s.Must(0, "bootstrap")
	want := map[string]int{a.Name: 1, b.Name: 1}
	proven(t, s, want)
	addressed(t, s, a, map[string]string{a.Name: a.IPs[1], b.Name: b.IPs[1]})

	now := map[string]string{}
	for i, m := range []*machine.Machine{a, b} {
		now[m.Name] = readdress(s, m, byte(240+i))
	}
	r = s.Must(0, "apply", "-v")
	mentions(t, "the apply", r.Stdout+r.Stderr, "address-changed")
	addressed(t, s, a, now)
	proven(t, s, want)
	nothingChanges(t, s, s.EndState())

	if got := s.Exec(b, "pgrep -c -x dockerd; cat /etc/docker/daemon.json; ls /run/docker.sock"); words(got) != `1 {"data-root": "/srv/docker"} /run/docker.sock` {
		t.Errorf("Docker is not as it was: %s", got)
	}
	s.Exec(b, "iptables -A INPUT -p tcp --dport 22 -j ACCEPT; iptables -A INPUT -m state --state ESTABLISHED,RELATED -j ACCEPT; iptables -P INPUT DROP")
	r = s.Must(0, "check", "--no-pairs")
	mentions(t, "a look at a machine that drops", r.Stdout+r.Stderr, "input-dropped")
}

// readdress gives a machine another address in its second network.
func readdress(s *scene.Scene, m *machine.Machine, last byte) string {
	octets := netip.MustParseAddr(m.IPs[1]).As4()
	octets[3] = last
	now := netip.AddrFrom4(octets).String()
	dev := interfaceOf(s, m)
	s.Exec(m, "ip addr del "+m.IPs[1]+"/24 dev "+dev+" && ip addr add "+now+"/24 dev "+dev)
	return now
}

// words is text without its line breaks.
func words(text string) string { return strings.Join(strings.Fields(text), " ") }
