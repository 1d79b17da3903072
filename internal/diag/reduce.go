package diag

// Reduce hides consequences: a finding whose entry depends, directly or through
// others, on an entry that was found too at the same machine or in the cluster
// as a whole. The rest keep their order. It is pure.
func Reduce(found []Finding) []Finding {
	depends := map[Code][]Code{}
	for _, p := range Catalogue() {
		depends[p.Code] = p.DependsOn
	}
	at := map[Code]map[string]bool{}
	for _, f := range found {
		if at[f.Code] == nil {
			at[f.Code] = map[string]bool{}
		}
		at[f.Code][f.Machine] = true
	}
	var out []Finding
	for _, f := range found {
		if !hasCause(f, depends, at) {
			out = append(out, f)
		}
	}
	return out
}

func hasCause(f Finding, depends map[Code][]Code, at map[Code]map[string]bool) bool {
	seen := map[Code]bool{f.Code: true}
	next := depends[f.Code]
	for len(next) > 0 {
		cause := next[0]
		next = next[1:]
		if seen[cause] {
			continue
		}
		seen[cause] = true
		// A cause of the cluster explains every machine; one of a machine explains the cluster's trouble.
		if m := at[cause]; m[f.Machine] || m[""] || f.Machine == "" && len(m) > 0 {
			return true
		}
		next = append(next, depends[cause]...)
	}
	return false
}
