package nvidia

import (
	"strconv"
	"strings"

	"github.com/gpuctl/gpuctl/internal/cuda"
)

// compare orders dotted numeric versions ("570.86.15" < "570.124.06").
func compare(a, b string) int { return cuda.Compare(a, b) }

// branch is the first number of a driver version, 0 where there is none.
func branch(version string) int {
	number, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(strings.TrimSpace(number))
	if err != nil {
		return 0
	}
	return n
}

// upstream is a package version without epoch and revision: "1.20.0-1" is "1.20.0".
func upstream(version string) string {
	if _, after, ok := strings.Cut(version, ":"); ok {
		version = after
	}
	v, _, _ := strings.Cut(version, "-")
	return v
}
