package pack

import (
	"fmt"
	"sort"
	"strings"
)

// known is one model of the table: words that its name has, and what is known of it.
type known struct {
	name      string
	words     string
	memoryGiB int64
	device    string
	compute   string
}

// models are common cards. Compute capabilities: NVIDIA's CUDA GPU pages. Device
// ids: the MIG configuration of the GPU Operator 26.7. Memory is what the name of
// the product says: the driver shows a few percent less, so that a plan for
// cards one has is made from the driver's figure.
func models() []known {
	return []known{
		{"V100 16GB", "v100 16gb", 16, "", "7.0"}, {"V100 32GB", "v100 32gb", 32, "", "7.0"},
		{"T4", "t4", 16, "", "7.5"}, {"A10", "a10", 24, "", "8.6"}, {"A30", "a30", 24, "20b7", "8.0"},
		{"A40", "a40", 48, "", "8.6"}, {"RTX A6000", "a6000", 48, "", "8.6"},
		{"A100 40GB", "a100 40gb", 40, "20b0", "8.0"}, {"A100 80GB", "a100 80gb", 80, "20b2", "8.0"},
		{"L4", "l4", 24, "", "8.9"}, {"L40", "l40", 48, "", "8.9"}, {"L40S", "l40s", 48, "", "8.9"},
		{"H100 NVL", "h100 nvl", 94, "2321", "9.0"}, {"H100 80GB", "h100", 80, "2330", "9.0"},
		{"H20", "h20", 96, "2329", "9.0"}, {"H200", "h200", 141, "2335", "9.0"},
		{"B200", "b200", 180, "2901", "10.0"}, {"B300", "b300", 269, "3182", "10.3"},
		{"RTX PRO 6000", "pro 6000", 96, "2bb5", "12.0"},
	}
}

// Find is the card of a model's name: nvidia-smi's, a label's, or a part of one
// ("H100", "A100 80GB", "NVIDIA-L40S"). The error names the models that are known
// or between which the name does not decide.
func Find(name string) (Card, error) {
	have := wordsOf(name)
	var found []known
	for _, m := range models() {
		all := true
		for _, w := range strings.Fields(m.words) {
			all = all && have[w]
		}
		if all {
			found = append(found, m)
		}
	}
	// "H100 NVL" is the more special one of two that match.
	sort.SliceStable(found, func(i, j int) bool { return len(strings.Fields(found[i].words)) > len(strings.Fields(found[j].words)) })
	if len(found) > 0 {
		m := found[0]
		return Card{Model: m.name, MemoryMiB: m.memoryGiB * 1024, Device: m.device, Compute: m.compute}, nil
	}
	var like, all []string
	for _, m := range models() {
		all = append(all, m.name)
		if have[strings.Fields(m.words)[0]] {
			like = append(like, m.name)
		}
	}
	if len(like) > 0 {
		return Card{}, fmt.Errorf("%q may be %s: say which", name, strings.Join(like, " or "))
	}
	return Card{}, fmt.Errorf("%q is no card that is known here; known are %s", name, strings.Join(all, ", "))
}

// wordsOf splits a name; "80 GB" and "80GB" are one word.
func wordsOf(name string) map[string]bool {
	name = strings.NewReplacer("-", " ", "_", " ", "/", " ").Replace(strings.ToLower(name))
	words := map[string]bool{}
	last := ""
	for _, w := range strings.Fields(name) {
		words[w] = true
		if w == "gb" || w == "6000" {
			words[last+w] = true
		}
		last = w
	}
	return words
}
