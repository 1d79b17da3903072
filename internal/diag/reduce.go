package diag

// Reduce hides consequences: a finding whose entry depends, directly or through
// others, on an entry that was found too at the same machine or in the cluster
// as a whole. What blocks is hidden only by what blocks. The rest keep their
// order. It is pure.
func Reduce(found []Finding) []Finding {
	g := causes{depends: map[Code][]Code{}, at: map[Code][]Finding{}}
	for _, p := range Catalogue() {
		g.depends[p.Code] = p.DependsOn
	}
	for _, f := range found {
		g.at[f.Code] = append(g.at[f.Code], f)
	}
	var out []Finding
	for _, f := range found {
		if !g.explain(f) {
			out = append(out, f)
		}
	}
	return out
}

type causes struct {
	depends map[Code][]Code
	at      map[Code][]Finding
}

// explain says whether something found is the cause of f.
func (g causes) explain(f Finding) bool {
	seen := map[Code]bool{f.Code: true}
	next := append([]Code{}, g.depends[f.Code]...)
	for len(next) > 0 {
		cause := next[0]
		next = next[1:]
		if seen[cause] {
			continue
		}
		seen[cause] = true
		for _, c := range g.at[cause] {
			// A cause of the cluster explains every machine; one of a machine explains the cluster's trouble.
			near := c.Machine == f.Machine || c.Machine == "" || f.Machine == ""
			if near && (c.Severity == Blocks || f.Severity != Blocks) {
				return true
			}
		}
		next = append(next, g.depends[cause]...)
	}
	return false
}
