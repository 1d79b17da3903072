package provision

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gpuctl/gpuctl/internal/inventory"
)

// Difference is what became of one machine between two lists.
type Difference struct {
	Name string `json:"name"`
	// Kind is added, gone or changed.
	Kind string `json:"kind"`
	// Text says it in words: the address, or what was changed.
	Text string `json:"text"`
}

// Compare says what changed between two lists of machines, by name. A machine
// that came back at another address, or with another pinned host key, is changed.
func Compare(before, after []inventory.Machine) []Difference {
	old := inventory.Inventory{Machines: before}
	now := inventory.Inventory{Machines: after}
	var out []Difference
	for _, m := range after {
		was, known := old.Find(m.Name)
		if !known {
			out = append(out, Difference{m.Name, "added", "at " + m.Host})
			continue
		}
		if text := changed(was, m); text != "" {
			out = append(out, Difference{m.Name, "changed", text})
		}
	}
	for _, m := range before {
		if _, there := now.Find(m.Name); !there {
			out = append(out, Difference{m.Name, "gone", "was at " + m.Host})
		}
	}
	slices.SortStableFunc(out, func(a, b Difference) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func changed(was, is inventory.Machine) string {
	var parts []string
	say := func(what, a, b string) {
		if a != b {
			parts = append(parts, fmt.Sprintf("%s %s, was %s", what, or(b, "not said"), or(a, "not said")))
		}
	}
	say("address", was.Host, is.Host)
	say("private address", was.PrivateAddress, is.PrivateAddress)
	say("role", string(was.Role), string(is.Role))
	say("group", was.Group, is.Group)
	if was.HostKey != is.HostKey {
		parts = append(parts, "another host key")
	}
	return strings.Join(parts, "; ")
}
