package charts

// OperatorReleaseName is the name under which gpuctl installs the GPU Operator.
const OperatorReleaseName = "gpu-operator"

// OperatorRelease is the GPU Operator's release as a set, the facts and the user
// want it: the values that the facts demand, under the set's own, under the user's.
// The second result lists the paths of demanded values that the set or the user
// overrides; a plan names each. It is pure. An empty want.RuntimePath is the set's.
// A mirror takes the place of Release.Chart.Repository; the digest stays.
func (s Set) OperatorRelease(want Want, user map[string]any) (Release, []string) {
	if want.RuntimePath == "" {
		want.RuntimePath = s.Operator.RuntimePath
	}
	demanded := OperatorValues(want)
	chosen, _ := Merge(s.Operator.Values, user)
	values, overrides := Merge(demanded, chosen)
	return Release{
		Name: OperatorReleaseName, Namespace: s.Operator.Namespace, Values: values, Adopt: true,
		Chart: Chart{Name: s.Operator.Chart, Version: s.Operator.Version, Repository: s.Operator.Repository, SHA256: s.Operator.SHA256},
	}, overrides
}
