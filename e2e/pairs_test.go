//go:build lab

package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/e2e/lab/machine"
	"github.com/gpuctl/gpuctl/e2e/scene"
)

// networkCodes are what a look at pairs of machines can raise.
var networkCodes = []string{
	"overlay-blocked", "mtu-mismatch", "kubelet-unreachable", "server-unreachable", "only-ssh-open", "clock-skew", "pairs-not-probed", "port-open-to-world",
}

// TestPairs: what is closed between two machines is found before anything is
// installed, and only that.
func TestPairs(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "pairs")
	m := s.Machines(machine.Spec{Name: "server"}, machine.Spec{Name: "one"}, machine.Spec{Name: "two"})
	s.Write(scene.Cluster{Members: []scene.Member{{Machine: m[0]}, {Machine: m[1]}, {Machine: m[2]}}})
	one, two := m[1], m[2]
	drop := func(proto string, port int) (string, string) {
		rule := fmt.Sprintf("INPUT -s %s -p %s --dport %d -j DROP", one.IP, proto, port)
		return "iptables -I " + rule, "iptables -D " + rule
	}
	udpDo, udpUndo := drop("udp", 8472)
	kubeletDo, kubeletUndo := drop("tcp", 10250)
	for _, c := range []struct {
		name     string
		on       *machine.Machine
		do, undo string
		code     int
		want     []string // machine:code
		shows    string
	}{
		{name: "clean", on: two, do: ":", undo: ":", code: 0},
		{
			name: "overlay", on: two, do: udpDo, undo: udpUndo, code: exitFindings,
			want: []string{two.Name + ":overlay-blocked"}, shows: one.Name + " to " + two.Name,
		},
		{
			name: "kubelet", on: two, do: kubeletDo, undo: kubeletUndo, code: 0,
			want: []string{two.Name + ":kubelet-unreachable"}, shows: one.Name + " to " + two.Name,
		},
		{
			name: "mtu", on: two, do: "ip link set eth0 mtu 1400", undo: "ip link set eth0 mtu 1500", code: 0,
			want: []string{two.Name + ":mtu-mismatch"}, shows: "packets of 1400 bytes arrive",
		},
		{
			name: "api", on: m[0], code: exitFindings,
			do: "iptables -I INPUT -p tcp --dport 6443 -j REJECT", undo: "iptables -D INPUT -p tcp --dport 6443 -j REJECT",
			want: []string{m[0].Name + ":server-unreachable"}, shows: "TCP 6443",
		},
		{
			name: "no perl", on: two, do: "mv /usr/bin/perl /usr/bin/perl.away", undo: "mv /usr/bin/perl.away /usr/bin/perl", code: 0,
			want: []string{two.Name + ":pairs-not-probed"}, shows: "perl is not installed",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.Exec(c.on, c.do)
			defer s.Exec(c.on, c.undo)
			start := time.Now()
			found, evidence := pairFindings(t, s, c.code)
			if !slices.Equal(found, c.want) {
				t.Errorf("found %v, want %v: %s", found, c.want, evidence)
			}
			mentions(t, "the evidence", evidence, c.shows)
			if took := time.Since(start); took > 30*time.Second {
				t.Errorf("check took %s", took)
			}
			for _, each := range m {
				if left := s.Exec(each, "pgrep -x perl || :; ss -Hltn 'sport = :10250 or sport = :6443'"); left != "" {
					t.Errorf("%s: something is left: %s", each.Name, left)
				}
			}
		})
	}
}

// TestPairsOfALivingCluster: ports that k3s holds are probed too.
func TestPairsOfALivingCluster(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "alive")
	m := s.Machines(machine.Spec{Name: "server"}, machine.Spec{Name: "one"})
	s.Write(scene.Cluster{Members: []scene.Member{{Machine: m[0]}, {Machine: m[1]}}})
	s.Must(0, "apply", "--skip-smoke")
	if found, evidence := pairFindings(t, s, 0); len(found) > 0 {
		t.Errorf("a healthy cluster: %v: %s", found, evidence)
	}
	s.Exec(m[1], "iptables -I INPUT -s "+m[0].IP+" -p udp --dport 8472 -j DROP")
	found, evidence := pairFindings(t, s, exitFindings)
	if want := []string{m[1].Name + ":overlay-blocked"}; !slices.Equal(found, want) {
		t.Errorf("found %v, want %v: %s", found, want, evidence)
	}
	r := s.Must(exitFindings, "doctor")
	mentions(t, "doctor", r.Stdout, "overlay-blocked", m[0].Name+" to "+m[1].Name)
}

// pairFindings runs check and returns what it says of the network.
func pairFindings(t *testing.T, s *scene.Scene, code int) (found []string, evidence string) {
	t.Helper()
	var result struct {
		Findings []struct{ Code, Machine, Evidence string }
	}
	s.Decode(s.Must(code, "check", "-o", "json"), &result)
	var said []string
	for _, f := range result.Findings {
		if slices.Contains(networkCodes, f.Code) {
			found, said = append(found, f.Machine+":"+f.Code), append(said, f.Evidence)
		}
	}
	return found, strings.Join(said, "\n")
}
