package nvidia

import (
	"strconv"
	"strings"
)

// compare orders dotted numeric versions ("570.86.15" < "570.124.06"): -1, 0 or
// 1. What follows the first character that is neither digit nor dot is ignored.
func compare(a, b string) int {
	x, y := parts(a), parts(b)
	for i := 0; i < max(len(x), len(y)); i++ {
		var m, n int
		if i < len(x) {
			m = x[i]
		}
		if i < len(y) {
			n = y[i]
		}
		if m != n {
			if m < n {
				return -1
			}
			return 1
		}
	}
	return 0
}

func parts(v string) []int {
	end := strings.IndexFunc(v, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
	if end >= 0 {
		v = v[:end]
	}
	var out []int
	for _, p := range strings.Split(v, ".") {
		n, err := strconv.Atoi(p)
		if err != nil {
			return out
		}
		out = append(out, n)
	}
	return out
}

// branch is the first number of a driver version, 0 where there is none.
func branch(version string) int {
	if p := parts(version); len(p) > 0 {
		return p[0]
	}
	return 0
}

// upstream is a package version without epoch and revision: "1.20.0-1" is "1.20.0".
func upstream(version string) string {
	if _, after, ok := strings.Cut(version, ":"); ok {
		version = after
	}
	v, _, _ := strings.Cut(version, "-")
	return v
}
