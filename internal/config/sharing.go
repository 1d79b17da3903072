package config

import (
	"fmt"

	"github.com/gpuctl/gpuctl/internal/sharing"
)

// Sharing splits GPUs between pods, one way at a time.
type Sharing struct {
	// TimeSlicing lets pods take turns on a GPU; neither memory nor faults are kept apart.
	TimeSlicing *Slices `yaml:"timeSlicing,omitempty"`
	// MPS lets pods compute at the same time, with equal shares of memory and threads.
	MPS *Slices `yaml:"mps,omitempty"`
	// MIG is the profile ("all-1g.10gb").
	MIG string `yaml:"mig,omitempty" gpuctl:"later"`
}

// Slices is how a GPU is shared; the number of pods alone will do.
type Slices struct {
	// Replicas is the number of pods for each GPU, at least 2.
	Replicas int `yaml:"replicas" jsonschema:"required,minimum=2" gpuctl:"short"`
	// RenameByDefault offers the shares as nvidia.com/gpu.shared; nvidia.com/gpu is gone then.
	RenameByDefault bool `yaml:"renameByDefault,omitempty"`
	// FailRequestsGreaterThanOne refuses pods that ask for more than one share, which is no larger share anyway.
	FailRequestsGreaterThanOne bool `yaml:"failRequestsGreaterThanOne,omitempty"`
}

// Spec is how the group's GPUs are shared.
func (g Group) Spec() sharing.Spec {
	if g.Sharing == nil {
		return sharing.Spec{}
	}
	for kind, s := range map[sharing.Kind]*Slices{sharing.TimeSlicing: g.Sharing.TimeSlicing, sharing.MPS: g.Sharing.MPS} {
		if s != nil {
			return sharing.Spec{Kind: kind, Replicas: s.Replicas, Rename: s.RenameByDefault, OnlyOne: s.FailRequestsGreaterThanOne}
		}
	}
	return sharing.Spec{}
}

// sharing checks what can be told wrong without a look at the cards.
func (k checker) sharing(s *Sharing, field string) {
	if s == nil {
		return
	}
	if s.TimeSlicing != nil && s.MPS != nil {
		k.problem(field, "timeSlicing and mps exclude each other; make a group of each")
		return
	}
	for name, part := range map[string]*Slices{"timeSlicing": s.TimeSlicing, "mps": s.MPS} {
		if part == nil || k.failed(field+"."+name) || k.failed(field+"."+name+".replicas") {
			continue
		}
		kind := sharing.TimeSlicing
		if name == "mps" {
			kind = sharing.MPS
		}
		if why := sharing.CheckReplicas(kind, part.Replicas); why != "" {
			k.problem(field+"."+name+".replicas", "%s", why)
		}
		if kind == sharing.MPS && part.FailRequestsGreaterThanOne {
			k.problem(fmt.Sprintf("%s.%s.failRequestsGreaterThanOne", field, name), "is for time-slicing: MPS refuses such requests always")
		}
	}
}

// pluginDocuments checks the device plugin's configurations that stand among the
// operator's values: what the plugin rejects, and keys that it passes over.
func (k checker) pluginDocuments(s *Spec) {
	const at = "spec.gpu.operator.values.devicePlugin.config"
	plugin, _ := s.GPU.Operator.Values["devicePlugin"].(map[string]any)
	own, _ := plugin["config"].(map[string]any)
	if own == nil {
		return
	}
	for i, g := range s.Groups {
		if g.Spec().Kind != sharing.Whole {
			k.problem(fmt.Sprintf("spec.groups[%d].sharing", i), "stands beside %s; give one of the two", at)
		}
	}
	data, _ := own["data"].(map[string]any)
	for key, value := range data {
		text, _ := value.(string)
		refused, dead := sharing.CheckDocument(text)
		for _, why := range append(refused, dead...) {
			k.problem(at+".data."+key, "%s", why)
		}
	}
}
