// Package pack says how many cards a set of workloads needs by each way to share
// GPUs. It is pure arithmetic over what the workloads say of themselves: it runs
// nothing and measures nothing.
package pack

import (
	"fmt"
	"sort"

	"github.com/gpuctl/gpuctl/internal/sharing"
)

// Workload is one kind of pod.
type Workload struct {
	Name string `json:"name"`
	// MemoryMiB is the GPU memory that one replica needs.
	MemoryMiB int64 `json:"memoryMiB"`
	// Compute is the share of a card that one replica keeps busy, 0 to 1; 0 is not said.
	Compute  float64 `json:"compute,omitempty"`
	Replicas int     `json:"replicas"`
}

// Card is a model of GPU.
type Card struct {
	Model string `json:"model"`
	// MemoryMiB is what the driver shows, or what the name says where no driver was asked.
	MemoryMiB int64 `json:"memoryMiB"`
	// Device is a PCI device id of the model, by which its MIG profiles are known.
	Device string `json:"-"`
	// Compute is the CUDA compute capability.
	Compute string `json:"-"`
	// Hourly is the price of one card per hour, 0 where it is not known.
	Hourly float64 `json:"hourlyPerCard,omitempty"`
}

// Result is what one card model comes to, by each kind of sharing.
type Result struct {
	Card
	Kinds []Kind `json:"kinds"`
}

// Kind is one way to share and what it needs.
type Kind struct {
	// Name is exclusive, time-slicing, mps or mig.
	Name string `json:"kind"`
	// Cards is how many are needed for what fits; Hourly their price, where known.
	Cards  int     `json:"cards"`
	Hourly float64 `json:"hourly,omitempty"`
	// Setting is what groups[].sharing would say, "" where cards differ or nothing is shared.
	Setting string `json:"setting,omitempty"`
	// Layout is what stands on how many cards.
	Layout []Filled `json:"layout"`
	// Unfit are workloads that do not fit, and why.
	Unfit []Unfit `json:"unfit,omitempty"`
	// Assumptions are what the numbers rest on.
	Assumptions []string `json:"assumptions"`
	// Impossible is why this card cannot be shared this way at all.
	Impossible string `json:"impossible,omitempty"`
}

// Filled is one content of a card and how many cards have it.
type Filled struct {
	Cards int `json:"cards"`
	// Pods are "name x count" parts; for MIG with the profile of each.
	Pods []string `json:"pods"`
}

// Unfit is a workload that does not fit on a card by a way to share.
type Unfit struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// Plan computes all kinds for one card.
func Plan(workloads []Workload, c Card) Result {
	r := Result{Card: c}
	for _, kind := range []Kind{exclusive(workloads, c), timeSlicing(workloads, c), mps(workloads, c), mig(workloads, c)} {
		kind.Hourly = c.Hourly * float64(kind.Cards)
		if kind.Layout == nil {
			kind.Layout = []Filled{}
		}
		r.Kinds = append(r.Kinds, kind)
	}
	return r
}

// tooLarge says why one replica does not fit on a whole card, "" if it does.
func tooLarge(w Workload, c Card) string {
	if w.MemoryMiB > c.MemoryMiB {
		return fmt.Sprintf("needs %d MiB, the card has %d", w.MemoryMiB, c.MemoryMiB)
	}
	return ""
}

func exclusive(workloads []Workload, c Card) Kind {
	k := Kind{Name: "exclusive", Assumptions: []string{"every pod has a card of its own"}}
	for _, w := range workloads {
		if why := tooLarge(w, c); why != "" {
			k.Unfit = append(k.Unfit, Unfit{w.Name, why})
			continue
		}
		k.Cards += w.Replicas
		k.Layout = append(k.Layout, Filled{w.Replicas, []string{w.Name + " x1"}})
	}
	return k
}

// timeSlicing packs by memory and by compute, largest first.
func timeSlicing(workloads []Workload, c Card) Kind {
	k := Kind{Name: string(sharing.TimeSlicing), Assumptions: []string{
		"time-slicing isolates neither memory nor faults: that pods keep to the memory they say is up to them",
		"pods take turns; one that is alone on its card is faster than its share",
		"the scheduler does not know memory: which pods come together is up to chance unless workloads have groups of their own",
	}}
	var bins []*bin
	most := 0
	for _, w := range bySize(workloads) {
		if why := tooLarge(w, c); why != "" {
			k.Unfit = append(k.Unfit, Unfit{w.Name, why})
			continue
		}
		for range w.Replicas {
			bins = place(bins, w, c)
		}
	}
	for _, b := range bins {
		most = max(most, b.pods)
	}
	k.Cards, k.Layout = len(bins), filled(bins)
	if most > 1 {
		k.Setting = fmt.Sprintf("{timeSlicing: %d}", most)
	}
	return k
}

// bin is a card that fills.
type bin struct {
	memory  int64
	compute float64
	pods    int
	counts  map[string]int
	slices  sharing.Slices
}

// place puts a replica on the first card with room, first-fit decreasing.
func place(bins []*bin, w Workload, c Card) []*bin {
	const rounding = 1e-9
	for _, b := range bins {
		if b.memory+w.MemoryMiB <= c.MemoryMiB && b.compute+w.Compute <= 1+rounding {
			b.add(w)
			return bins
		}
	}
	b := &bin{counts: map[string]int{}}
	b.add(w)
	return append(bins, b)
}

func (b *bin) add(w Workload) {
	b.memory, b.compute, b.pods = b.memory+w.MemoryMiB, b.compute+w.Compute, b.pods+1
	b.counts[w.Name]++
}

// mps finds the number of clients by which fewest cards are needed: all clients of
// a card have equal shares of memory and threads, and a pod takes one.
func mps(workloads []Workload, c Card) Kind {
	k := Kind{Name: string(sharing.MPS), Assumptions: []string{
		"all clients of a card have equal shares of memory and threads, and a pod has one (k8s-device-plugin)",
		"what fits no share takes a card alone, in a group without sharing",
		"a fatal fault of one pod ends the others on its card",
	}}
	var whole []Workload
	for _, w := range workloads {
		if why := tooLarge(w, c); why != "" {
			k.Unfit = append(k.Unfit, Unfit{w.Name, why})
			continue
		}
		whole = append(whole, w)
	}
	best, clients := count(whole), 1
	for n := 2; n <= sharing.MPSClients(c.Compute); n++ {
		if cards := mpsCards(whole, c, n); cards < best {
			best, clients = cards, n
		}
	}
	k.Cards = best
	if clients > 1 {
		k.Setting = fmt.Sprintf("{mps: %d}", clients)
	}
	k.Layout = mpsLayout(whole, c, clients)
	return k
}

func count(workloads []Workload) int {
	n := 0
	for _, w := range workloads {
		n += w.Replicas
	}
	return n
}

func inShare(w Workload, c Card, clients int) bool {
	const rounding = 1e-9
	return w.MemoryMiB*int64(clients) <= c.MemoryMiB && w.Compute*float64(clients) <= 1+rounding
}

func mpsCards(workloads []Workload, c Card, clients int) int {
	shared, alone := 0, 0
	for _, w := range workloads {
		if inShare(w, c, clients) {
			shared += w.Replicas
		} else {
			alone += w.Replicas
		}
	}
	return (shared+clients-1)/clients + alone
}

func mpsLayout(workloads []Workload, c Card, clients int) []Filled {
	var bins []*bin
	var out []Filled
	for _, w := range bySize(workloads) {
		if clients == 1 || !inShare(w, c, clients) {
			out = append(out, Filled{w.Replicas, []string{w.Name + " x1"}})
			continue
		}
		for range w.Replicas {
			if n := len(bins); n == 0 || bins[n-1].pods == clients {
				bins = append(bins, &bin{counts: map[string]int{}})
			}
			bins[len(bins)-1].add(w)
		}
	}
	return append(filled(bins), out...)
}

// bySize orders workloads by what they take most of, largest first.
func bySize(workloads []Workload) []Workload {
	out := append([]Workload(nil), workloads...)
	sort.SliceStable(out, func(i, j int) bool {
		if out[i].MemoryMiB != out[j].MemoryMiB {
			return out[i].MemoryMiB > out[j].MemoryMiB
		}
		return out[i].Compute > out[j].Compute
	})
	return out
}

// filled groups cards with the same content, in the order they were filled.
func filled(bins []*bin) []Filled {
	var out []Filled
	at := map[string]int{}
	for _, b := range bins {
		var pods []string
		for name, n := range b.counts {
			pods = append(pods, fmt.Sprintf("%s x%d", name, n))
		}
		sort.Strings(pods)
		key := fmt.Sprint(pods)
		i, known := at[key]
		if !known {
			i = len(out)
			at[key] = i
			out = append(out, Filled{Pods: pods})
		}
		out[i].Cards++
	}
	return out
}
