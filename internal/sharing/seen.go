package sharing

import (
	"fmt"
	"sort"
	"strconv"
)

// Labels of feature discovery (GFD) that tell how a node shares.
const (
	labelReplicas = "nvidia.com/gpu.replicas"
	labelStrategy = "nvidia.com/gpu.sharing-strategy"
)

// Seen is how a node shares its GPUs now, by the labels of feature discovery and
// the resources it offers. A node that says nothing shares nothing.
func Seen(labels map[string]string, capacity map[string]int64) Spec {
	if s, ok := seenMIG(labels, capacity); ok {
		return s
	}
	n, err := strconv.Atoi(labels[labelReplicas])
	if err != nil || n < 2 {
		return Spec{}
	}
	s := Spec{Kind: Kind(labels[labelStrategy]), Replicas: n, Rename: capacity[SharedGPU] > 0}
	if s.Kind != MPS {
		s.Kind = TimeSlicing
	}
	if ours, ok := Parse(labels[ConfigLabel]); ok && ours.Kind == s.Kind && ours.Replicas == n {
		s.OnlyOne = ours.OnlyOne
	}
	return s
}

// Missing says what a node with so many GPUs does not show yet of this way to
// share, one entry each, nothing when all is as planned. Capacity of a resource
// that has gone stays for some minutes; allocatable does not.
func (s Spec) Missing(gpus int, labels map[string]string, capacity, allocatable map[string]int64) []string {
	var missing []string
	for resource, want := range s.Offers(gpus) {
		if have := allocatable[resource]; have != want {
			missing = append(missing, fmt.Sprintf("%d of %d %s allocatable", have, want, resource))
		}
		if have := capacity[resource]; want > 0 && have != want {
			missing = append(missing, fmt.Sprintf("capacity is %d of %d %s", have, want, resource))
		}
	}
	for label, want := range s.labels(gpus) {
		if have := labels[label]; have != want {
			missing = append(missing, fmt.Sprintf("label %s is %q, wanted %q", label, have, want))
		}
	}
	sort.Strings(missing)
	return missing
}

// labels are what feature discovery writes for this way to share.
func (s Spec) labels(gpus int) map[string]string {
	if s.Kind == MIG {
		return s.migLabels(gpus)
	}
	labels := map[string]string{labelReplicas: strconv.Itoa(s.Units()), labelStrategy: "none"}
	switch s.Kind {
	case TimeSlicing:
		labels[labelStrategy] = string(s.Kind)
	case MPS:
		labels[labelStrategy], labels["nvidia.com/mps.capable"] = string(s.Kind), "true"
	}
	return labels
}
