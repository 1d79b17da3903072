package bootstrap

import (
	"strings"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/inventory"
)

// threeMachines is a server and two agents.
func threeMachines() []inventory.Machine {
	return []inventory.Machine{
		{Name: "server", Role: inventory.Server}, {Name: "one", Role: inventory.Agent}, {Name: "two", Role: inventory.Agent},
	}
}

// goodPairs are all ways between three healthy machines.
func goodPairs() []Pair {
	yes := true
	var out []Pair
	for _, from := range threeMachines() {
		for _, to := range threeMachines() {
			if from.Name == to.Name {
				continue
			}
			tcp := map[int]string{10250: "open"}
			if to.Name == "server" {
				tcp[6443] = "open"
			}
			out = append(out, Pair{From: from.Name, To: to.Name, UDP: &yes, UDPPort: 8472, Size: 1500, MTU: 1500, TCP: tcp, Within: time.Millisecond})
		}
	}
	return out
}

func TestPairFindings(t *testing.T) {
	no := false
	between := func(p *Pair, a, b string) bool { return p.From == a && p.To == b || p.From == b && p.To == a }
	for name, c := range map[string]struct {
		change  func(*Pair)
		exposed []Exposed
		// What is found: one finding of this severity at this machine, or none.
		who      string
		code     diag.Code
		severity diag.Severity
		shows    string
	}{
		"healthy": {change: func(*Pair) {}},
		"UDP lost one way": {
			change: func(p *Pair) {
				if p.From == "one" && p.To == "two" {
					p.UDP, p.Size, p.Within = &no, 0, 0
				}
			}, who: "two", code: "overlay-blocked", severity: diag.Blocks, shows: "UDP 8472 does not arrive (one to two)",
		},
		"UDP of one agent lost everywhere": {
			change: func(p *Pair) {
				if p.To == "one" {
					p.UDP, p.Size = &no, 0
				}
			}, who: "one", code: "overlay-blocked", severity: diag.Blocks, shows: "(server to one, two to one)",
		},
		"server closed to all": {
			change: func(p *Pair) {
				if p.To == "server" {
					p.TCP[6443] = "no answer"
				}
			}, who: "server", code: "server-unreachable", severity: diag.Blocks, shows: "TCP 6443: no answer (one to server, two to server)",
		},
		"kubelet closed": {
			change: func(p *Pair) {
				if p.To == "one" {
					p.TCP[10250] = "No route to host"
				}
			}, who: "one", code: "kubelet-unreachable", severity: diag.Warns, shows: "TCP 10250: No route to host",
		},
		"nothing but SSH": {
			change: func(p *Pair) {
				if between(p, "server", "one") || between(p, "one", "two") {
					p.UDP, p.Size = &no, 0
					for port := range p.TCP {
						p.TCP[port] = "no answer"
					}
				}
			}, who: "one", code: "only-ssh-open", severity: diag.Blocks, shows: "and UDP 8472",
		},
		"small MTU": {
			change: func(p *Pair) {
				if between(p, "server", "two") {
					p.Size = 1400
				}
			}, who: "two", code: "mtu-mismatch", severity: diag.Warns, shows: "packets of 1400 bytes arrive, those of 1500",
		},
		"jumbo on one side": {
			change: func(p *Pair) {
				if p.From == "one" {
					p.MTU = 9001
				}
			}, who: "one", code: "mtu-mismatch", severity: diag.Warns, shows: "those of 9001",
		},
		"clock minutes off": {
			change: func(p *Pair) {
				if p.From == "two" {
					p.Offset = -5 * time.Minute
				} else if p.To == "two" {
					p.Offset = 5 * time.Minute
				}
			}, who: "two", code: "clock-skew", severity: diag.Blocks, shows: "clocks differ by 300 s",
		},
		"nothing known without perl": {
			change: func(p *Pair) {
				if p.From == "two" || p.To == "two" {
					*p = Pair{From: p.From, To: p.To, Unknown: "two: perl is not installed"}
				}
			}, who: "two", code: "pairs-not-probed", severity: diag.Informs, shows: "perl is not installed",
		},
		"open to the world": {
			change: func(*Pair) {}, exposed: []Exposed{{Machine: "one", Address: "203.0.113.9", Proto: "udp", Port: 8472}},
			who: "one", code: "port-open-to-world", severity: diag.Warns, shows: "UDP 8472",
		},
	} {
		t.Run(name, func(t *testing.T) {
			pairs := goodPairs()
			for i := range pairs {
				c.change(&pairs[i])
			}
			want := ""
			if c.code != "" {
				want = c.who + "/" + string(c.code) + "/" + string(c.severity)
			}
			var got, text []string
			for _, f := range pairFindings(pairs, c.exposed, threeMachines()) {
				if _, known := diag.Lookup(f.Code); !known {
					t.Errorf("%s is not in the catalogue", f.Code)
				}
				got = append(got, f.Machine+"/"+string(f.Code)+"/"+string(f.Severity))
				text = append(text, f.Evidence)
			}
			if strings.Join(got, " ") != want {
				t.Errorf("got %q, want %q: %q", got, want, text)
			}
			if !strings.Contains(strings.Join(text, "\n"), c.shows) {
				t.Errorf("%q does not say %q", text, c.shows)
			}
		})
	}
}

func TestOfManyMachinesServersAndARingAreProbed(t *testing.T) {
	names := []string{"server"}
	gpus := []int{0}
	for range 17 {
		names, gpus = append(names, "gpu-"+string(rune('a'+len(names)))), append(gpus, 1)
	}
	w := clusterOf(t, names...)
	s := sightOf(w, gpus...)
	p := planPairs("mark", w.machines, s, chooseNetwork(w.config.Spec.Kubernetes.Network, w.machines, s.facts))
	if len(p.requests) != 18 || len(p.requests[0].Peers) != 17 {
		t.Fatalf("%d machines, the server has %d peers", len(p.requests), len(p.requests[0].Peers))
	}
	for i, r := range p.requests[2:17] {
		if len(r.Peers) != 3 {
			t.Errorf("machine %d has %d peers, want the server and two neighbours", i+3, len(r.Peers))
		}
	}
	few := planPairs("mark", w.machines[:16], s, chooseNetwork(w.config.Spec.Kubernetes.Network, w.machines[:16], s.facts))
	for _, r := range few.requests {
		if len(r.Peers) != 15 {
			t.Errorf("%d peers among 16 machines", len(r.Peers))
		}
	}
}

func TestPairsOf(t *testing.T) {
	w := clusterOf(t, "server", "one")
	s := sightOf(w, 0, 1)
	network := chooseNetwork(w.config.Spec.Kubernetes.Network, w.machines, s.facts)
	p := planPairs("m", w.machines, s, network)
	seen := make([]host.PairSight, 2)
	for i, lines := range [][]string{
		{"noise", "m ready", "m held 6443", "m udp 2 200 100.0 103.1", "m udp 2 1450 100.2 103.1", "m tcp 2 10250 open"},
		{"m ready", "m udp 1 1500 103.0 100.1", "m tcp 1 6443 open", "m tcp 1 10250 Connection refused", "m tcp x y", "m udp 1"},
	} {
		for _, line := range lines {
			seen[i].Take("m", line)
		}
	}
	pairs := p.pairsOf(seen, s, network)
	if len(pairs) != 2 || !*pairs[0].UDP || pairs[0].Size != 1500 || pairs[0].TCP[10250] != "open" {
		t.Errorf("%+v", pairs)
	}
	if off := pairs[0].Offset; off.Round(100*time.Millisecond) != -2900*time.Millisecond {
		t.Errorf("the agent's clock is %s off the server's, want -2.9s", off)
	}
	if back := pairs[1]; back.Size != 1450 || back.TCP[10250] != "Connection refused" || back.TCP[6443] != "open" {
		t.Errorf("%+v", back)
	}

	// A machine without perl says nothing of what it would have heard.
	seen[1] = host.PairSight{Failed: "perl is not installed"}
	seen[0].TCP = map[int]map[int]string{2: {10250: "no answer"}}
	for _, pair := range p.pairsOf(seen, s, network) {
		if pair.Unknown != "one: perl is not installed" || pair.UDP != nil || len(pair.TCP) != 0 {
			t.Errorf("a guess: %+v", pair)
		}
	}
}

func FuzzPairSight(f *testing.F) {
	f.Add("m udp 1 1500 1.5 2.5\nm tcp 2 6443 open\nm held 1\nm failed x")
	f.Fuzz(func(t *testing.T, text string) {
		var s host.PairSight
		for line := range strings.Lines(text) {
			s.Take("m", line)
		}
		for to, answers := range s.TCP {
			for port, answer := range answers {
				if to < 0 || port <= 0 || answer == "" {
					t.Errorf("%d %d %q", to, port, answer)
				}
			}
		}
	})
}

// A small MTU is told once: by packets where they were sent, else by what the
// interfaces have.
func TestWhatPacketsShowedIsToldOnce(t *testing.T) {
	guess := []diag.Finding{{Code: codeMTU, Machine: "gpu-1"}, {Code: codeMTU, Machine: "gpu-2"}, {Code: codeOverlay, Machine: "gpu-1"}}
	left := untold(guess, []diag.Finding{{Code: codeMTU, Machine: "gpu-1"}})
	if len(left) != 2 || left[0].Machine != "gpu-2" || left[1].Code != codeOverlay || len(guess) != 3 || guess[0].Machine != "gpu-1" {
		t.Errorf("left %+v of %+v", left, guess)
	}
}
