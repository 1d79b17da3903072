package scenario

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

// Slice is one MIG device: a GPU instance with one compute instance over all of it.
type Slice struct {
	GI      int    `json:"gi"`
	Profile string `json:"profile"`
	UUID    string `json:"uuid"`
}

// Numbers of capability device nodes, as /proc/driver/nvidia-caps/mig-minors
// counts them: https://docs.nvidia.com/datacenter/tesla/mig-user-guide, device nodes.
const (
	firstCap, capsPerGPU, capsPerGI = 3, 135, 9
	instances                       = 15
)

// Caps are the minors of a slice's GPU instance and of its compute instance.
func (s Slice) Caps(gpu int) (gi, ci int) {
	gi = firstCap + gpu*capsPerGPU + s.GI*capsPerGI
	return gi, gi + 1
}

// MIGMinors is the content of mig-minors for so many GPUs.
func MIGMinors(gpus int) string {
	var b strings.Builder
	b.WriteString("config 1\nmonitor 2\n")
	for gpu := range gpus {
		for gi := range instances {
			at := firstCap + gpu*capsPerGPU + gi*capsPerGI
			fmt.Fprintf(&b, "gpu%d/gi%d/access %d\n", gpu, gi, at)
			for ci := range capsPerGI - 1 {
				fmt.Fprintf(&b, "gpu%d/gi%d/ci%d/access %d\n", gpu, gi, ci, at+1+ci)
			}
		}
	}
	return b.String()
}

// Profile is what NVML tells of one kind of slice.
type Profile struct {
	Name string
	// Index is NVML's number of the profile, ID the driver's.
	Index, ID           int
	Slices, Most        int
	Multiprocessors     int
	MemoryMiB           int
	computeOf, memoryOf int
}

// Profiles are those of a card of 80 GB; no other card of the lab has MIG. Counts:
// the MIG configuration of the GPU Operator 26.7; memory and multiprocessors are synthetic.
func Profiles() []Profile {
	return []Profile{
		{"1g.10gb", 0, 19, 1, 7, 16, 9984, 1, 1}, {"2g.20gb", 1, 14, 2, 3, 32, 19968, 2, 2},
		{"3g.40gb", 2, 9, 3, 2, 60, 40192, 3, 4}, {"4g.40gb", 3, 5, 4, 1, 64, 40192, 4, 4},
		{"7g.80gb", 4, 0, 7, 1, 132, 80384, 7, 8}, {"1g.10gb+me", 7, 20, 1, 1, 16, 9984, 1, 1},
		{"1g.20gb", 9, 15, 1, 4, 26, 19968, 1, 2},
	}
}

func profile(name string) (Profile, bool) {
	for _, p := range Profiles() {
		if p.Name == name {
			return p, true
		}
	}
	return Profile{}, false
}

// Cut returns the slices of a GPU for these profiles, one each. Like the driver it
// refuses a profile the card does not have and what does not fit beside the rest.
func (g GPU) Cut(profiles []string) ([]Slice, error) {
	var out []Slice
	compute, memory, times := 0, 0, map[string]int{}
	for i, name := range profiles {
		p, known := profile(name)
		if !known || g.MIG == nil {
			return nil, fmt.Errorf("%s has no profile %s", g.Model, name)
		}
		compute, memory, times[name] = compute+p.computeOf, memory+p.memoryOf, times[name]+1
		if compute > 7 || memory > 8 || times[name] > p.Most {
			return nil, fmt.Errorf("insufficient resources for %s on %s", name, g.Model)
		}
		h := sha256.Sum256(fmt.Appendf(nil, "%s/%d/%s", g.UUID, i, name))
		out = append(out, Slice{GI: i + 1, Profile: name, UUID: fmt.Sprintf("MIG-%x-%x-%x-%x-%x", h[0:4], h[4:6], h[6:8], h[8:10], h[10:16])})
	}
	return out, nil
}

// ModeNeedsReset says whether the card takes another MIG mode only at a reset.
func (g GPU) ModeNeedsReset() bool { return g.ComputeCapability == "8.0" }

// migLines are the lines of the trailer that tell the C side of MIG.
func (s Scenario) migLines() string {
	var b strings.Builder
	for i, g := range s.GPUs {
		if g.MIG == nil {
			continue
		}
		for _, p := range Profiles() {
			fmt.Fprintf(&b, "profile\t%d\t%d\t%d\t%d\t%d\t%d\t%d\n", i, p.Index, p.ID, p.Slices, p.Most, p.Multiprocessors, p.MemoryMiB)
		}
		for _, slice := range g.MIG.Slices {
			p, _ := profile(slice.Profile)
			fmt.Fprintf(&b, "slice\t%d\t%d\t%d\t%s\t%s MIG %s\n", i, slice.GI, p.Index, slice.UUID, g.Model, slice.Profile)
		}
	}
	return b.String()
}
