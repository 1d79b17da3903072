// Package sharing says how GPUs are split between pods: the configuration of
// NVIDIA's device plugin for each kind of sharing, the labels and resources a
// node must show afterwards, and what NVIDIA rejects. It is pure.
package sharing

import (
	"fmt"
	"strconv"
	"strings"
)

// Kind is a way to share a GPU.
type Kind string

const (
	// Whole: a pod gets whole GPUs.
	Whole Kind = ""
	// TimeSlicing: pods take turns on a GPU. Neither memory nor faults are kept apart.
	TimeSlicing Kind = "time-slicing"
	// MPS: pods compute at the same time, each with an equal share of memory and threads.
	MPS Kind = "mps"
	// MIG: a GPU is cut into slices that have memory and engines of their own.
	MIG Kind = "mig"
)

// ConfigLabel is the node label by which the device plugin and feature discovery
// find their configuration (k8s-device-plugin, config-manager).
const ConfigLabel = "nvidia.com/device-plugin.config"

// DefaultKey names the configuration of nodes that carry no ConfigLabel.
const DefaultKey = "gpuctl-whole"

// Names of resources.
const (
	GPU       = "nvidia.com/gpu"
	SharedGPU = "nvidia.com/gpu.shared"
)

// Spec is one way to share. Its zero value shares nothing.
type Spec struct {
	Kind Kind
	// Replicas is how many pods share a GPU, for TimeSlicing and MPS.
	Replicas int
	// Rename offers the shares under SharedGPU.
	Rename bool
	// OnlyOne refuses pods that ask for more than one share (failRequestsGreaterThanOne).
	OnlyOne bool
	// Strategy and Layout are MIG's: under which names slices are offered, and
	// what is asked for: "1g.10gb" (as many as fit), Balanced, or "1g.10gb:2 3g.40gb:1".
	Strategy, Layout string
	// Slices are what Layout comes to on each GPU of a card (On); of Seen, on the whole node.
	Slices string
}

// prefix marks the configurations that gpuctl writes.
const prefix = "gpuctl-"

// Key names the configuration: the value of ConfigLabel, but for MIG, which the
// plugin finds by itself. Everything in the configuration stands in its name, so
// that what a key means never changes.
func (s Spec) Key() string {
	switch s.Kind {
	case Whole:
		return DefaultKey
	case MIG:
		return prefix + "mig-" + s.Strategy + "-" + labelValue(s.Layout)
	}
	key := fmt.Sprintf("%s%s-%d", prefix, s.Kind, s.Replicas)
	if s.Rename {
		key += "-renamed"
	}
	if s.OnlyOne {
		key += "-only-one"
	}
	return key
}

// Parse reads a key back; false for one that gpuctl did not write, and for MIG's,
// which is no value of ConfigLabel.
func Parse(key string) (Spec, bool) {
	if key == DefaultKey {
		return Spec{}, true
	}
	rest, ours := strings.CutPrefix(key, prefix)
	if !ours {
		return Spec{}, false
	}
	var s Spec
	for _, kind := range []Kind{TimeSlicing, MPS} {
		if after, ok := strings.CutPrefix(rest, string(kind)+"-"); ok {
			s.Kind, rest = kind, after
		}
	}
	rest, s.OnlyOne = strings.CutSuffix(rest, "-only-one")
	rest, s.Rename = strings.CutSuffix(rest, "-renamed")
	n, err := strconv.Atoi(rest)
	if s.Replicas = n; err != nil || s.Kind == Whole || s.Key() != key {
		return Spec{}, false
	}
	return s, true
}

// PluginConfig is the device plugin's configuration. flags are left out: the
// operator gives them by environment, which would win anyway.
func (s Spec) PluginConfig() string {
	section := map[Kind]string{TimeSlicing: "timeSlicing", MPS: "mps"}[s.Kind]
	if section == "" {
		return "version: v1\n"
	}
	text := "version: v1\nsharing:\n  " + section + ":\n"
	if s.Rename {
		text += "    renameByDefault: true\n"
	}
	if s.OnlyOne {
		text += "    failRequestsGreaterThanOne: true\n"
	}
	return text + fmt.Sprintf("    resources:\n    - name: %s\n      replicas: %d\n", GPU, s.Replicas)
}

// Resource is what pods ask for; the first of Resources.
func (s Spec) Resource() string { return s.Resources()[0] }

// Resources are what pods can ask for: one, but for slices of several profiles.
func (s Spec) Resources() []string {
	switch {
	case s.Rename:
		return []string{SharedGPU}
	case s.Kind != MIG || s.Strategy != Mixed:
		return []string{GPU}
	}
	var all []string
	for _, p := range s.slices() {
		all = append(all, MIGResource(p.Profile))
	}
	if len(all) == 0 {
		return []string{GPU}
	}
	return all
}

// Units is how many pods share one GPU, at least 1.
func (s Spec) Units() int { return max(s.Replicas, 1) }

// Offers is what a node with so many GPUs has to offer, by resource; 0 stands
// for a resource that must be gone.
func (s Spec) Offers(gpus int) map[string]int64 {
	if s.Kind == MIG {
		return s.migOffers(gpus)
	}
	offers := map[string]int64{GPU: 0, SharedGPU: 0}
	offers[s.Resource()] = int64(gpus * s.Units())
	return offers
}

// String is the kind for people: "time-slicing, 4 pods for each GPU".
func (s Spec) String() string {
	switch {
	case s.Kind == Whole:
		return "not shared"
	case s.Kind == MIG && s.Slices != "":
		return "MIG " + s.Strategy + ", " + strings.ReplaceAll(s.Slices, ":", " x")
	case s.Kind == MIG:
		return "MIG " + s.Strategy + ", " + s.Layout
	case s.Rename:
		return fmt.Sprintf("%s, %d pods for each GPU as %s", s.Kind, s.Replicas, SharedGPU)
	}
	return fmt.Sprintf("%s, %d pods for each GPU", s.Kind, s.Replicas)
}

// Caution is what this kind of sharing does not do, "" for whole GPUs and MIG.
func (s Spec) Caution() string {
	switch s.Kind {
	case TimeSlicing:
		return "time-slicing isolates neither memory nor faults: one pod can fill a GPU's memory, and its fault ends the others"
	case MPS:
		return fmt.Sprintf("MPS gives each pod 1/%d of memory and threads of a GPU; a fatal fault of one pod ends the others on it", s.Replicas)
	}
	return ""
}
