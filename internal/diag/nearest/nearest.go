// Package nearest finds what somebody meant who mistyped a name. It lies below
// the catalogue, which is a leaf, so that every room may use it.
package nearest

import "strings"

// Of is the name closest to got, "" where none is close enough to be what was
// meant: about a third of the letters may differ. Letters' case does not count;
// of names equally close it is the first.
func Of(got string, names []string) string { return Within(got, names, len(got)/3+1) }

// Within is Of with the number of edits that may lie between the two.
func Within(got string, names []string, edits int) string {
	best, least := "", edits+1
	for _, n := range names {
		if d := distance(strings.ToLower(got), strings.ToLower(n)); d < least {
			best, least = n, d
		}
	}
	return best
}

// distance is the number of bytes to insert, delete or replace (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
