package config

import (
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/gpuctl/gpuctl/internal/sharing"
)

// Sharing splits GPUs between pods, one way at a time.
type Sharing struct {
	// TimeSlicing lets pods take turns on a GPU; neither memory nor faults are kept apart.
	TimeSlicing *Slices `yaml:"timeSlicing,omitempty"`
	// MPS lets pods compute at the same time, with equal shares of memory and threads.
	MPS *Slices `yaml:"mps,omitempty"`
	// MIG cuts GPUs into slices with memory and engines of their own, on cards that have it.
	MIG *MIG `yaml:"mig,omitempty"`
}

// MIG is how every GPU is cut; the profile alone will do.
type MIG struct {
	// Profile cuts every GPU into as many slices of one profile as fit ("1g.10gb"); balanced is NVIDIA's mix of sizes.
	Profile string `yaml:"profile,omitempty" gpuctl:"short"`
	// Slices are how many slices of each profile every GPU is cut into, instead of profile.
	Slices map[string]int `yaml:"slices,omitempty"`
	// Strategy: single offers slices as nvidia.com/gpu, mixed as nvidia.com/mig-PROFILE; it is one for the whole cluster. Empty means single where all slices are alike.
	Strategy string `yaml:"strategy,omitempty" jsonschema:"enum=single,enum=mixed"`
}

// layout is what is asked for, as package sharing writes it.
func (m MIG) layout() string {
	if len(m.Slices) == 0 {
		return strings.TrimPrefix(m.Profile, "all-")
	}
	var slices sharing.Slices
	for profile, count := range m.Slices {
		slices = append(slices, sharing.Slice{Profile: profile, Count: count})
	}
	sort.Slice(slices, func(i, j int) bool { return slices[i].Profile < slices[j].Profile })
	return slices.String()
}

// uniform: all slices are of one profile.
func (m MIG) uniform() bool { return m.layout() != sharing.Balanced && len(m.Slices) < 2 }

func (m MIG) spec() sharing.Spec {
	s := sharing.Spec{Kind: sharing.MIG, Layout: m.layout(), Strategy: m.Strategy}
	if s.Strategy == "" {
		s.Strategy = sharing.Mixed
		if m.uniform() {
			s.Strategy = sharing.Single
		}
	}
	return s
}

// SlicesOf is the way to share that a layout and a strategy of package sharing
// mean; the strategy may be empty. The error says what is wrong with them.
func SlicesOf(layout, strategy string) (sharing.Spec, error) {
	m := MIG{Profile: layout, Strategy: strategy}
	if slices, ok := sharing.ParseSlices(layout); ok {
		m = MIG{Strategy: strategy, Slices: map[string]int{}}
		for _, p := range slices {
			m.Slices[p.Profile] = p.Count
		}
	}
	switch {
	case len(m.Slices) == 0 && m.layout() != sharing.Balanced && !sharing.IsProfile(m.layout()):
		return sharing.Spec{}, fmt.Errorf("%q is no MIG profile; they look like 1g.10gb, and balanced is NVIDIA's mix", layout)
	case strategy != "" && strategy != sharing.Single && strategy != sharing.Mixed:
		return sharing.Spec{}, fmt.Errorf("the strategy is single or mixed, not %q", strategy)
	case strategy == sharing.Single && !m.uniform():
		return sharing.Spec{}, errors.New("the strategy single takes slices of one profile alone; say mixed")
	}
	return m.spec(), nil
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
	if g.Sharing.MIG != nil {
		return g.Sharing.MIG.spec()
	}
	return sharing.Spec{}
}

// sharing checks what can be told wrong without a look at the cards.
func (k checker) sharing(s *Sharing, field string) {
	if s == nil {
		return
	}
	var kinds []string
	for _, kind := range []struct {
		name  string
		given bool
	}{{"timeSlicing", s.TimeSlicing != nil}, {"mps", s.MPS != nil}, {"mig", s.MIG != nil}} {
		if kind.given {
			kinds = append(kinds, kind.name)
		}
	}
	if len(kinds) > 1 {
		k.problem(field, "%s exclude each other; make a group of each", strings.Join(kinds, " and "))
		return
	}
	k.mig(s.MIG, field+".mig")
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

// mig checks a layout as far as it can be told wrong without a look at the cards.
func (k checker) mig(m *MIG, field string) {
	if m == nil || k.failed(field) {
		return
	}
	switch {
	case m.Profile != "" && len(m.Slices) > 0:
		k.problem(field, "profile and slices exclude each other")
		return
	case m.Profile == "" && len(m.Slices) == 0:
		k.problem(field, "give profile (1g.10gb, or balanced) or slices ({1g.10gb: 2, 3g.40gb: 1})")
		return
	case len(m.Slices) == 0 && m.layout() != sharing.Balanced && !sharing.IsProfile(m.layout()):
		k.problem(field, "%q is no MIG profile; they look like 1g.10gb, and balanced is NVIDIA's mix", m.Profile)
		return
	}
	for profile, count := range m.Slices {
		switch {
		case !sharing.IsProfile(profile):
			k.problem(field+".slices."+profile, "%q is no MIG profile; they look like 1g.10gb", profile)
		case count < 1 || count > 7:
			k.problem(field+".slices."+profile, "%d slices of one profile; 1 to 7 fit on a card", count)
		}
	}
	if m.Strategy == sharing.Single && !m.uniform() {
		k.problem(field+".strategy", "single takes slices of one profile alone; say mixed")
	}
}

// beside checks what groups may not do side by side in one cluster.
func (k checker) beside(groups []Group) {
	specs := map[string]sharing.Spec{}
	for _, g := range groups {
		specs[g.Name] = g.Spec()
	}
	for _, why := range sharing.Beside(specs) {
		k.problem("spec.groups", "%s", why)
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
