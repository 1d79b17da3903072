package nvidia

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/internal/diag"
)

// Flavours of the kernel modules.
const (
	FlavourOpen        = "open"
	FlavourProprietary = "proprietary"
)

// Driver is which driver is wanted where gpuctl provides it.
type Driver struct {
	// Branch is the driver branch: "580".
	Branch string
	// Explicit: the user named the branch, so that a driver of another one is replaced.
	Explicit bool
	// Modules is FlavourOpen or FlavourProprietary; "auto" and empty go by the cards.
	Modules string
	// NoReboot: the machine must not be rebooted.
	NoReboot bool
	// Repository is where NVIDIA's package repositories lie, without distribution
	// and architecture; empty means Repositories.
	Repository string
	// KeyFingerprint is that of their key, Keys that of repositories with one of
	// their own, by the repository's name ("debian13").
	KeyFingerprint string
	Keys           map[string]string
}

// Choice is the driver that fits all cards of a machine.
type Choice struct {
	// Flavour is FlavourOpen or FlavourProprietary.
	Flavour string `json:"flavour"`
	Branch  int    `json:"branch"`
	// Reason says in a few words what decided.
	Reason string `json:"reason"`
}

// demand is what one card asks of the driver.
type demand struct {
	name        string
	flavour     string // "" for either
	first, last int    // branches, 0 for no limit
}

func demandOf(d host.PCIDevice) demand {
	card := cards()[d.Device]
	gen, _ := generationOf(d.Device)
	out := demand{name: Model(d), first: branch(card.MinDriver), last: gen.LastBranch}
	switch {
	case card.OpenOnly || gen.Modules == FlavourOpen:
		out.flavour = FlavourOpen
	case gen.Modules == FlavourProprietary:
		out.flavour = FlavourProprietary
	}
	return out
}

// Choose picks flavour and branch for the cards of a machine, or returns the
// finding that says why none fits. The open modules serve what is Turing or
// newer and are the only ones for Blackwell and Grace; what is older needs the
// proprietary ones, which serve newer cards beside it too. The set's branch
// gives way to the last one of a card; the user's own does not.
func Choose(want Want, seen host.Facts) (Choice, *diag.Finding) {
	refuse := func(code diag.Code, format string, args ...any) (Choice, *diag.Finding) {
		f := diag.Found(code, want.Machine, fmt.Sprintf(format, args...))
		return Choice{}, &f
	}
	number, err := strconv.Atoi(want.Driver.Branch)
	if err != nil {
		return refuse(CodeNoPackage, "the driver branch %q is no number", want.Driver.Branch)
	}
	var open, proprietary, newest, oldest demand
	for _, g := range GPUs(seen) {
		d := demandOf(g)
		if d.flavour == FlavourOpen && open.name == "" {
			open = d
		}
		if d.flavour == FlavourProprietary && proprietary.name == "" {
			proprietary = d
		}
		if d.first > newest.first {
			newest = d
		}
		if d.last > 0 && (oldest.last == 0 || d.last < oldest.last) {
			oldest = d
		}
	}
	modules := want.Driver.Modules
	switch {
	case open.name != "" && proprietary.name != "":
		return refuse(CodeMixedCards, "%s needs the open modules, %s the proprietary ones", open.name, proprietary.name)
	case newest.first > 0 && oldest.last > 0 && newest.first > oldest.last:
		return refuse(CodeMixedCards, "%s needs branch %d or newer, %s ends with %d", newest.name, newest.first, oldest.name, oldest.last)
	case modules == FlavourProprietary && open.name != "":
		return refuse(CodeNeedsOpen, "%s, and driver.modules is proprietary", open.name)
	case modules == FlavourOpen && proprietary.name != "":
		return refuse(CodeNeedsProprietary, "%s, and driver.modules is open", proprietary.name)
	case number < newest.first:
		return refuse(CodeDriverTooOld, "%s needs branch %d or newer, wanted is %d", newest.name, newest.first, number)
	case oldest.last > 0 && number > oldest.last && want.Driver.Explicit:
		return refuse(CodeDriverTooNew, "%s (last branch %d), and driver.branch is %d", oldest.name, oldest.last, number)
	}
	c := Choice{Flavour: FlavourOpen, Branch: number, Reason: "the default since branch 560"}
	switch {
	case modules == FlavourOpen || modules == FlavourProprietary:
		c.Flavour, c.Reason = modules, "driver.modules"
	case open.name != "":
		c.Reason = open.name + " runs with these alone"
	case proprietary.name != "":
		c.Flavour, c.Reason = FlavourProprietary, proprietary.name+" runs with these alone"
	}
	if oldest.last > 0 && number > oldest.last {
		c.Branch = oldest.last
		c.Reason = strings.Join([]string{c.Reason, fmt.Sprintf("%d is its last branch", oldest.last)}, ", ")
	}
	return c, nil
}
