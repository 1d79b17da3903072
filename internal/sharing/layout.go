package sharing

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
)

// Strategies of MIG: under which names a node offers its slices. The operator has
// one for the whole cluster (ClusterPolicy mig.strategy).
const (
	// Single offers slices, all of one profile, as GPU.
	Single = "single"
	// Mixed offers slices as nvidia.com/mig-PROFILE; GPUs without MIG stay GPU.
	Mixed = "mixed"
)

// Labels of the MIG manager (gpu-operator, MIG page).
const (
	// MIGConfigLabel chooses a configuration by its name.
	MIGConfigLabel = "nvidia.com/mig.config"
	// MIGStateLabel says what became of it: pending, rebooting, success, failed.
	MIGStateLabel = "nvidia.com/mig.config.state"
	// MIGOff is the configuration that turns MIG off on all GPUs of a node.
	MIGOff = "all-disabled"
)

// Balanced is NVIDIA's mix of sizes: two slices of the smallest profile and one
// each of the next ones.
const Balanced = "balanced"

// Slice is so many slices of one profile on each GPU.
type Slice struct {
	Profile string
	Count   int
}

// Slices are the slices of each GPU as text: "1g.10gb:2 3g.40gb:1".
type Slices []Slice

func (s Slices) String() string {
	parts := make([]string, len(s))
	for i, p := range s {
		parts[i] = fmt.Sprintf("%s:%d", p.Profile, p.Count)
	}
	return strings.Join(parts, " ")
}

// ParseSlices reads the text of Slices in any order; false for anything else.
func ParseSlices(text string) (Slices, bool) {
	var out Slices
	seen := map[string]bool{}
	for _, part := range strings.Fields(text) {
		profile, count, ok := strings.Cut(part, ":")
		n, err := strconv.Atoi(count)
		if !ok || err != nil || n < 1 || n > 9 || !IsProfile(profile) || seen[profile] {
			return nil, false
		}
		seen[profile] = true
		out = append(out, Slice{profile, n})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Profile < out[j].Profile })
	return out, len(out) > 0
}

// IsProfile says whether a name has the form of a MIG profile: 1g.10gb, 1g.10gb+me.
func IsProfile(name string) bool {
	compute, memory, ok := Shape(name)
	return ok && compute > 0 && compute <= 8 && memory > 0
}

// Shape is a profile's compute slices and its memory in GB as its name says.
func Shape(name string) (compute, memory int, ok bool) {
	g, rest, ok1 := strings.Cut(name, "g.")
	gb, suffix, ok2 := strings.Cut(rest, "gb")
	c, err1 := strconv.Atoi(g)
	m, err2 := strconv.Atoi(gb)
	switch suffix {
	case "", "+me", "-me", "+me.all", "+gfx":
	default:
		return 0, 0, false
	}
	return c, m, ok1 && ok2 && err1 == nil && err2 == nil
}

// MIGResource is what pods ask for to get a slice of this profile by the mixed
// strategy: the device plugin writes "." for "+" (k8s-device-plugin internal/rm).
func MIGResource(profile string) string {
	return "nvidia.com/mig-" + strings.ReplaceAll(profile, "+", ".")
}

// layout is the slices of one GPU of a card with these profiles: as asked for
// explicitly, as many of one profile as fit, or NVIDIA's mix.
func layout(asked string, have []Profile) (Slices, bool) {
	if explicit, ok := ParseSlices(asked); ok {
		return explicit, true
	}
	if asked != Balanced {
		for _, p := range have {
			if p.Name == asked {
				return Slices{{p.Name, p.Most}}, true
			}
		}
		return nil, false
	}
	return balanced(have)
}

// balanced is the mix of the operator's all-balanced: 1g x2, 2g x1, 3g x1, on
// cards of four slices 1g x2 and 2g x1 (gpu-operator, default-mig-parted-config).
func balanced(have []Profile) (Slices, bool) {
	var out Slices
	for _, part := range []Slice{{"1g.", 2}, {"2g.", 1}, {"3g.", 1}} {
		for _, p := range have {
			if strings.HasPrefix(p.Name, part.Profile) && !strings.ContainsAny(p.Name, "+-") {
				out = append(out, Slice{p.Name, part.Count})
				break
			}
		}
	}
	return out, len(out) > 1
}

// Overfull says why slices cannot stand side by side on one card, "" if nothing
// tells so: MIG has as many compute slices as the largest profile, and memory in
// units of the smallest. That they fit is necessary, not sufficient: where each
// may lie is known to the driver alone (mig user guide, placement).
func Overfull(slices Slices, have []Profile) string {
	unit, room, most := 0, 0, 0
	for _, p := range have {
		c, m, _ := Shape(p.Name)
		if unit == 0 || m < unit {
			unit = m
		}
		most, room = max(most, c), max(room, m)
	}
	parts := func(gb int) int { return (gb + unit/2) / unit }
	compute, memory := 0, 0
	for _, s := range slices {
		c, m, _ := Shape(s.Profile)
		compute, memory = compute+c*s.Count, memory+parts(m)*s.Count
		for _, p := range have {
			if p.Name == s.Profile && s.Count > p.Most {
				return fmt.Sprintf("at most %d of %s fit", p.Most, p.Name)
			}
		}
	}
	if compute > most {
		return fmt.Sprintf("%s take %d compute slices of %d", slices, compute, most)
	}
	if memory > parts(room) {
		return fmt.Sprintf("%s take %d memory slices of %d", slices, memory, parts(room))
	}
	return ""
}
