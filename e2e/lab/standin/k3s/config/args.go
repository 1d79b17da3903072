package config

import (
	"maps"
	"slices"
	"strings"
)

// Extra merges the options of a component: the defaults, changed by the
// user's values for a `*-arg` flag (name=value, a leading -- allowed, a missing
// value means true). name+=v appends to a default list, name-=v prepends.
// Source: k3s pkg/util/args.go.
func Extra(defaults map[string]string, user []string) []string {
	var repeated []string
	merged := maps.Clone(defaults)
	seen := map[string]bool{}
	for _, arg := range user {
		name, value, found := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if !found {
			value = "true"
		}
		base := strings.TrimRight(name, "+-")
		before := merged[base]
		_, isDefault := defaults[base]
		switch {
		case strings.HasSuffix(name, "+") && before != "":
			merged[base] = before + "," + value
		case strings.HasSuffix(name, "-") && before != "":
			merged[base] = value + "," + before
		case seen[base] && !isDefault:
			repeated = append(repeated, "--"+base+"="+value)
		default:
			merged[base] = value
		}
		seen[base] = true
	}
	args := make([]string, 0, len(merged)+len(repeated))
	for _, name := range slices.Sorted(maps.Keys(merged)) {
		args = append(args, "--"+name+"="+merged[name])
	}
	return append(args, repeated...)
}
