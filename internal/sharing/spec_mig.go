package sharing

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sort"
	"strconv"
	"strings"
)

// On is the spec for GPUs of this card: what MIG's Layout comes to on it. Other
// kinds of sharing, and a card that does not have the profile, leave it as it is.
func (s Spec) On(c Card) Spec {
	if s.Kind != MIG {
		return s
	}
	if slices, ok := layout(s.Layout, Profiles(c.Device)); ok {
		s.Slices = slices.String()
	}
	return s
}

// slices are the slices of each GPU, nil where the card is not known.
func (s Spec) slices() Slices {
	slices, _ := ParseSlices(s.Slices)
	return slices
}

// MIGConfig names the MIG manager's configuration: the value of MIGConfigLabel.
// One profile and the mix have names in the operator's own list; anything else,
// and profiles with a suffix, need a list of ours, see MIGParted.
func (s Spec) MIGConfig() string {
	if !s.ownConfig() {
		return "all-" + s.Layout
	}
	return "gpuctl-" + labelValue(s.Layout)
}

// ownConfig says that the operator's list has no name for the layout for certain:
// its names for suffixed profiles differ between versions.
func (s Spec) ownConfig() bool { return s.Layout != Balanced && strings.ContainsAny(s.Layout, ": +-") }

// labelValue writes a layout in what a label's value may hold, 50 characters of it.
func labelValue(layout string) string {
	text := strings.NewReplacer(":", ".x", " ", "_", "+", "_p", "-", "_m").Replace(layout)
	if len(text) <= 50 {
		return text
	}
	sum := sha256.Sum256([]byte(layout))
	return text[:40] + "-" + hex.EncodeToString(sum[:4])
}

// MIGParted is a list of configurations for the MIG manager (mig-parted, version
// v1) that holds what these specs name, "" where the operator's own list does.
func MIGParted(specs []Spec) string {
	own, entries := false, map[string]string{}
	for _, s := range specs {
		if s.Kind != MIG {
			continue
		}
		own = own || s.ownConfig()
		entries[s.MIGConfig()] += s.partedEntries()
	}
	if !own {
		return ""
	}
	text := "version: v1\nmig-configs:\n  " + MIGOff + ":\n  - devices: all\n    mig-enabled: false\n"
	names := make([]string, 0, len(entries))
	for name := range entries {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		text += "  " + name + ":\n" + entries[name]
	}
	return text
}

// partedEntries are the entries of one configuration. How many slices fit depends
// on the card, so a profile alone has one entry for each number that occurs, by
// the PCI ids of the cards that have it.
func (s Spec) partedEntries() string {
	if explicit, ok := ParseSlices(s.Layout); ok {
		return partedEntry("", explicit)
	}
	var text string
	for _, t := range migTables() {
		slices, ok := layout(s.Layout, t.list())
		if !ok {
			continue
		}
		var ids []string
		for _, id := range strings.Fields(t.devices) {
			ids = append(ids, strconv.Quote("0x"+strings.ToUpper(id)+"10DE"))
		}
		text += partedEntry(strings.Join(ids, ", "), slices)
	}
	return text
}

func partedEntry(filter string, slices Slices) string {
	text := "  - devices: all\n"
	if filter != "" {
		text = "  - device-filter: [" + filter + "]\n    devices: all\n"
	}
	text += "    mig-enabled: true\n    mig-devices:\n"
	for _, p := range slices {
		text += fmt.Sprintf("      %q: %d\n", p.Profile, p.Count)
	}
	return text
}

// migOffers is what a node with so many GPUs offers as slices.
func (s Spec) migOffers(gpus int) map[string]int64 {
	offers := map[string]int64{GPU: 0, SharedGPU: 0}
	for _, p := range s.slices() {
		resource := GPU
		if s.Strategy == Mixed {
			resource = MIGResource(p.Profile)
		}
		offers[resource] += int64(p.Count * gpus)
	}
	return offers
}

// migLabels are what the MIG manager and feature discovery write for a node whose
// GPUs are cut this way. The product's label ends with the profile by Single.
func (s Spec) migLabels(gpus int) map[string]string {
	labels := map[string]string{MIGConfigLabel: s.MIGConfig(), MIGStateLabel: "success", "nvidia.com/mig.strategy": s.Strategy}
	for _, p := range s.slices() {
		count := strconv.Itoa(p.Count * gpus)
		if s.Strategy == Mixed {
			labels[MIGResource(p.Profile)+".count"] = count
		} else {
			labels["nvidia.com/gpu.count"] = count
		}
	}
	return labels
}

// seenMIG is how a node cuts its GPUs now, by its labels and resources.
func seenMIG(labels map[string]string, capacity map[string]int64) (Spec, bool) {
	config := labels[MIGConfigLabel]
	if config == "" || config == MIGOff {
		return Spec{}, false
	}
	if product, profile, ok := strings.Cut(labels["nvidia.com/gpu.product"], "-MIG-"); ok && product != "" && profile != "INVALID" {
		return Spec{Kind: MIG, Strategy: Single, Layout: strings.ReplaceAll(profile, ".me", "+me"), Slices: Slices{{profile, int(capacity[GPU])}}.String()}, true
	}
	var slices Slices
	for resource, n := range capacity {
		if profile, ok := strings.CutPrefix(resource, "nvidia.com/mig-"); ok && n > 0 {
			slices = append(slices, Slice{profile, int(n)})
		}
	}
	if len(slices) == 0 {
		return Spec{}, false
	}
	sort.Slice(slices, func(i, j int) bool { return slices[i].Profile < slices[j].Profile })
	return Spec{Kind: MIG, Strategy: Mixed, Layout: strings.TrimPrefix(config, "all-"), Slices: slices.String()}, true
}
