package bootstrap

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/inventory"
)

// Codes of what pairs of machines show.
const (
	codeOnlySSH       diag.Code = "only-ssh-open"
	codeServerPort    diag.Code = "server-unreachable"
	codeKubeletPort   diag.Code = "kubelet-unreachable"
	codeOverlay       diag.Code = "overlay-blocked"
	codeMTU           diag.Code = "mtu-mismatch"
	codeClockSkew     diag.Code = "clock-skew"
	codeOpenToWorld   diag.Code = "port-open-to-world"
	codePairsUnprobed diag.Code = "pairs-not-probed"
)

// Clocks further apart than these are told, and stop.
const (
	skewWarns  = 2 * time.Second
	skewBlocks = time.Minute
)

// pairFindings says what is wrong between machines. It is pure. A finding
// stands at the machine that has the most trouble of its kind; between equals
// at an agent, so that one bad machine is left out and not the cluster.
func pairFindings(pairs []Pair, exposed []Exposed, machines []inventory.Machine) []diag.Finding {
	f := pairFinder{servers: map[string]bool{}}
	for _, m := range machines {
		f.servers[m.Name] = m.Role == inventory.Server
	}
	closed := f.nothingPasses(pairs)
	rest := slices.DeleteFunc(slices.Clone(pairs), func(p Pair) bool { return closed[key(p)] })
	f.blame(rest, codeServerPort, func(p Pair) string { return f.closedPorts(p, true) })
	f.blame(rest, codeKubeletPort, func(p Pair) string { return f.closedPorts(p, false) })
	f.blame(rest, codeOverlay, overlayTrouble)
	f.blame(rest, codeMTU, mtuTrouble)
	f.clocks(pairs)
	f.unprobed(pairs)
	for _, x := range exposed {
		f.raise(codeOpenToWorld, x.Machine, fmt.Sprintf("%s %d answers this computer at the public address %s", strings.ToUpper(x.Proto), x.Port, x.Address))
	}
	return f.found
}

type pairFinder struct {
	servers map[string]bool
	found   []diag.Finding
}

func (f *pairFinder) raise(code diag.Code, machine, evidence string) {
	f.found = append(f.found, diag.Found(code, machine, evidence))
}

// way is two machines, whichever direction.
type way struct{ a, b string }

func key(p Pair) way { return way{min(p.From, p.To), max(p.From, p.To)} }

// nothingPasses finds machines between which no port at all is open, in
// neither direction, though SSH reaches both: one cause, one finding.
func (f *pairFinder) nothingPasses(pairs []Pair) map[way]bool {
	open, closed := map[way]bool{}, map[way]bool{}
	for _, p := range pairs {
		tried := len(p.TCP) > 0
		if p.UDP != nil && *p.UDP || !tried {
			open[key(p)] = true
		}
		for _, answer := range p.TCP {
			if answer == "open" {
				open[key(p)] = true
			}
		}
	}
	for _, p := range pairs {
		closed[key(p)] = !open[key(p)]
	}
	f.blame(pairs, codeOnlySSH, func(p Pair) string {
		if !closed[key(p)] {
			return ""
		}
		text := "TCP " + strings.Join(ports(p.TCP), " and ")
		if p.UDP != nil {
			text += fmt.Sprintf(" and UDP %d", p.UDPPort)
		}
		return text
	})
	return closed
}

// closedPorts are those of the control plane, or the others.
func (f *pairFinder) closedPorts(p Pair, controlPlane bool) string {
	var bad []string
	for port, answer := range p.TCP {
		if answer != "open" && (port != kubeletPort) == controlPlane {
			bad = append(bad, fmt.Sprintf("TCP %d: %s", port, answer))
		}
	}
	slices.Sort(bad)
	return strings.Join(bad, ", ")
}

func overlayTrouble(p Pair) string {
	if p.UDP == nil || *p.UDP {
		return ""
	}
	return fmt.Sprintf("UDP %d does not arrive", p.UDPPort)
}

func mtuTrouble(p Pair) string {
	if p.UDP == nil || !*p.UDP || p.MTU == 0 || p.Size >= p.MTU {
		return ""
	}
	return fmt.Sprintf("packets of %d bytes arrive, those of %d (the interface's MTU) do not", p.Size, p.MTU)
}

// blame raises one finding for each machine at fault: again and again the one
// with the most ways in trouble, until all are told.
func (f *pairFinder) blame(pairs []Pair, code diag.Code, trouble func(Pair) string) {
	var bad []Pair
	for _, p := range pairs {
		if trouble(p) != "" {
			bad = append(bad, p)
		}
	}
	for len(bad) > 0 {
		who := f.worst(bad)
		byText, order := map[string][]string{}, []string{}
		bad = slices.DeleteFunc(bad, func(p Pair) bool {
			if p.From != who && p.To != who {
				return false
			}
			text := trouble(p)
			if byText[text] == nil {
				order = append(order, text)
			}
			byText[text] = append(byText[text], p.From+" to "+p.To)
			return true
		})
		var parts []string
		for _, text := range order {
			parts = append(parts, text+" ("+strings.Join(byText[text], ", ")+")")
		}
		f.raise(code, who, strings.Join(parts, "; "))
	}
}

func (f *pairFinder) worst(bad []Pair) string {
	ways := map[string]map[way]bool{}
	for _, p := range bad {
		for _, name := range []string{p.From, p.To} {
			if ways[name] == nil {
				ways[name] = map[way]bool{}
			}
			ways[name][key(p)] = true
		}
	}
	names := make([]string, 0, len(ways))
	for name := range ways {
		names = append(names, name)
	}
	return slices.MinFunc(names, func(a, b string) int {
		if c := cmp.Compare(len(ways[b]), len(ways[a])); c != 0 {
			return c
		}
		if f.servers[a] != f.servers[b] {
			if f.servers[a] {
				return 1
			}
			return -1
		}
		return cmp.Compare(b, a) // the later one, so that the first may stay
	})
}

// clocks compares each way once. Machines of which one is wrong against this
// computer too have their own finding.
func (f *pairFinder) clocks(pairs []Pair) {
	worst := diag.Warns
	text := func(p Pair) string {
		off := p.Offset.Abs() - p.Within
		if p.Within == 0 || p.From > p.To || off < skewWarns {
			return ""
		}
		if off > skewBlocks {
			worst = diag.Blocks
		}
		return fmt.Sprintf("clocks differ by %.0f s", p.Offset.Abs().Seconds())
	}
	before := len(f.found)
	f.blame(pairs, codeClockSkew, text)
	for i := before; i < len(f.found); i++ {
		f.found[i].Severity = worst
	}
}

// unprobed names each reason once.
func (f *pairFinder) unprobed(pairs []Pair) {
	told := map[string]bool{}
	for _, p := range pairs {
		if p.Unknown != "" && !told[p.Unknown] {
			told[p.Unknown] = true
			machine, why, _ := strings.Cut(p.Unknown, ": ")
			f.raise(codePairsUnprobed, machine, why)
		}
	}
}

func ports(answers map[int]string) []string {
	var out []string
	for port := range answers {
		out = append(out, fmt.Sprint(port))
	}
	slices.Sort(out)
	return out
}

func sortedExposed(all []Exposed) []Exposed {
	slices.SortFunc(all, func(a, b Exposed) int {
		return cmp.Or(cmp.Compare(a.Machine, b.Machine), cmp.Compare(a.Proto, b.Proto), cmp.Compare(a.Port, b.Port))
	})
	return all
}
