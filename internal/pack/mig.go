package pack

import (
	"fmt"

	"github.com/gpuctl/gpuctl/internal/sharing"
)

// usable is the part of the memory in a profile's name that a program gets, in
// percent: on an A100 40GB a slice 1g.5gb has 4864 MiB (MIG user guide).
const usable = 95

// mig gives every replica the smallest slice that holds it and packs slices onto cards.
func mig(workloads []Workload, c Card) Kind {
	k := Kind{Name: string(sharing.MIG), Assumptions: []string{
		"memory and faults are kept apart; a pod computes on one slice",
		fmt.Sprintf("a slice holds %d%% of the memory in its name, and compute in proportion to its slices", usable),
		"that slices fit beside each other is judged by their sums; where each may lie is known to the driver alone",
	}}
	have := sharing.Profiles(c.Device)
	if len(have) == 0 {
		k.Impossible, k.Assumptions = "the card has no MIG, or none that is recorded", nil
		return k
	}
	var bins []*bin
	for _, w := range bySize(workloads) {
		profile, ok := smallest(w, have)
		if !ok {
			k.Unfit = append(k.Unfit, Unfit{w.Name, fmt.Sprintf("no slice has %d MiB and %.0f%% of compute", w.MemoryMiB, w.Compute*100)})
			continue
		}
		for range w.Replicas {
			bins = placeSlice(bins, w, profile, have)
		}
	}
	k.Cards, k.Layout = len(bins), filled(bins)
	k.Setting = oneSetting(bins, have)
	return k
}

// smallest is the profile that holds a replica and takes least of the card.
func smallest(w Workload, have []sharing.Profile) (best string, ok bool) {
	most := 0
	for _, p := range have {
		compute, _, _ := sharing.Shape(p.Name)
		most = max(most, compute)
	}
	bestCompute, bestMemory := 0, 0
	for _, p := range have {
		compute, gb, _ := sharing.Shape(p.Name)
		if !plain(p.Name) || int64(gb)*1024*usable/100 < w.MemoryMiB || w.Compute > float64(compute)/float64(most)+1e-9 {
			continue
		}
		if !ok || gb < bestMemory || gb == bestMemory && compute < bestCompute {
			best, bestCompute, bestMemory, ok = p.Name, compute, gb, true
		}
	}
	return best, ok
}

// plain: profiles with a suffix are for media and graphics.
func plain(name string) bool {
	for _, r := range name {
		if r == '+' || r == '-' {
			return false
		}
	}
	return true
}

func placeSlice(bins []*bin, w Workload, profile string, have []sharing.Profile) []*bin {
	for _, b := range bins {
		if more := with(b.slices, profile); sharing.Overfull(more, have) == "" {
			b.slices = more
			b.counts[w.Name+" on "+profile]++
			return bins
		}
	}
	return append(bins, &bin{counts: map[string]int{w.Name + " on " + profile: 1}, slices: sharing.Slices{{Profile: profile, Count: 1}}})
}

func with(slices sharing.Slices, profile string) sharing.Slices {
	out := append(sharing.Slices(nil), slices...)
	for i := range out {
		if out[i].Profile == profile {
			out[i].Count++
			return out
		}
	}
	return append(out, sharing.Slice{Profile: profile, Count: 1})
}

// oneSetting is what a group of all these cards would say: one layout for all, or
// slices of one profile alone.
func oneSetting(bins []*bin, have []sharing.Profile) string {
	if len(bins) == 0 {
		return ""
	}
	for _, b := range bins {
		if len(b.slices) != 1 || b.slices[0].Profile != bins[0].slices[0].Profile {
			if len(bins) > 1 {
				return ""
			}
			text, ok := sharing.ParseSlices(b.slices.String())
			if !ok {
				return ""
			}
			return "{mig: {slices: {" + yamlOf(text) + "}}}"
		}
	}
	return "{mig: " + bins[0].slices[0].Profile + "}"
}

func yamlOf(slices sharing.Slices) string {
	text := ""
	for i, p := range slices {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%s: %d", p.Profile, p.Count)
	}
	return text
}
