package charts

import (
	"reflect"
	"strings"
)

// Asked is what the user asks of a release that is somebody else's. All the rest
// of it stays.
type Asked struct {
	// Version is the chart's version; empty keeps the release's own.
	Version string
	// Values are laid over the release's own.
	Values map[string]any
	// Taints are keys of NoSchedule taints that the operator and its operands have
	// to tolerate, beside what they tolerate already.
	Taints []string
}

// Adopt turns a wanted release into the one of the same chart that somebody else
// made: under another name, in another namespace, or under this very name without
// gpuctl. The result keeps that release's version and values, those of its last
// good revision where the newest is none, but for what Asked changes; the state is
// that release's, for Decide. ok is false where rel is not to adopt, where there
// is nothing to adopt, and where there are several: which is meant is never
// guessed. It is pure.
func Adopt(rel Release, s State) (adopted Release, theirs State, ok bool) {
	switch {
	case !rel.Adopt:
		return rel, s, false
	case s.Phase == Absent && s.Other != nil:
		rel.Name, rel.Namespace, s = s.Foreign[0].Name, s.Foreign[0].Namespace, *s.Other
	case s.Phase == Absent || s.Phase == "" || s.Owner != "" && !s.Adopted:
		return rel, s, false
	}
	version, values := s.Version, s.Values
	if s.LastGood > 0 {
		version, values = s.GoodVersion, s.GoodValues
	}
	if rel.Asked.Version != "" {
		version = rel.Asked.Version
	}
	if version != "" && version != rel.Chart.Version {
		rel.Chart.Version, rel.Chart.SHA256 = version, ""
	}
	rel.Values, _ = Merge(values, rel.Asked.Values)
	tolerate(rel.Values, rel.Asked.Taints)
	rel.Adopted = true
	return rel, s, true
}

// tolerate adds tolerations to what an operator's values have. Where they say
// nothing the chart's own default is kept: a list in values replaces it.
func tolerate(values map[string]any, taints []string) {
	if len(taints) == 0 {
		return
	}
	for path, standard := range map[string][]string{
		"operator.tolerations": controlPlane(), "daemonsets.tolerations": {"nvidia.com/gpu"},
		"node-feature-discovery.master.tolerations": controlPlane(), "node-feature-discovery.worker.tolerations": append(controlPlane(), "nvidia.com/gpu"),
	} {
		keys := strings.Split(path, ".")
		have, said := lookup(values, keys).([]any)
		if !said {
			have = tolerating(standard)
		}
		for _, more := range tolerating(taints) {
			if !holds(have, more) {
				have = append(have, more)
			}
		}
		put(values, keys, have)
	}
}

func tolerating(keys []string) []any {
	var all []any
	for _, key := range keys {
		all = append(all, map[string]any{"key": key, "operator": "Exists", "effect": "NoSchedule"})
	}
	return all
}

func holds(list []any, item any) bool {
	for _, have := range list {
		if reflect.DeepEqual(plain(have), plain(item)) {
			return true
		}
	}
	return false
}

func lookup(values map[string]any, path []string) any {
	var at any = values
	for _, key := range path {
		m, ok := at.(map[string]any)
		if !ok {
			return nil
		}
		at = m[key]
	}
	return at
}

// SharingValues are those of OperatorValues that sharing needs, and nothing else.
func SharingValues(w Want) map[string]any {
	values := map[string]any{}
	for _, v := range OperatorTable(w) {
		mig := w.MIG != "" && (strings.HasPrefix(v.Path, "mig.") || strings.HasPrefix(v.Path, "migManager."))
		if mig || strings.HasPrefix(v.Path, "devicePlugin.config.") {
			put(values, strings.Split(v.Path, "."), v.Value)
		}
	}
	return values
}
