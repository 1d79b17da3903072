package cuda

import (
	"strconv"
	"strings"
)

// Release is a CUDA Toolkit and the least driver on Linux x86_64 that it was
// released for.
type Release struct{ CUDA, Driver string }

// Releases are those of the release notes' table 3, newest first; updates are
// the third number (12.4.1 is 12.4 Update 1). 12.7 was never released. The row
// of 13.4 is a developer preview's.
func Releases() []Release {
	return []Release{
		{"13.4.0", "616.00"}, {"13.3.1", "610.43.02"}, {"13.3.0", "610.43.02"},
		{"13.2.2", "595.71.05"}, {"13.2.1", "595.58.03"}, {"13.2.0", "595.45.04"}, {"13.1.1", "590.48.01"}, {"13.1.0", "590.44.01"},
		{"13.0.2", "580.95.05"}, {"13.0.1", "580.82.07"}, {"13.0.0", "580.65.06"},
		{"12.9.1", "575.57.08"}, {"12.9.0", "575.51.03"}, {"12.8.1", "570.124.06"}, {"12.8.0", "570.26"},
		{"12.6.3", "560.35.05"}, {"12.6.2", "560.35.03"}, {"12.6.1", "560.35.03"}, {"12.6.0", "560.28.03"},
		{"12.5.1", "555.42.06"}, {"12.5.0", "555.42.02"}, {"12.4.1", "550.54.15"}, {"12.4.0", "550.54.14"},
		{"12.3.1", "545.23.08"}, {"12.3.0", "545.23.06"}, {"12.2.2", "535.104.05"}, {"12.2.1", "535.86.09"}, {"12.2.0", "535.54.03"},
		{"12.1.1", "530.30.02"}, {"12.1.0", "530.30.02"}, {"12.0.1", "525.85.12"}, {"12.0.0", "525.60.13"},
		{"11.8.0", "520.61.05"}, {"11.7.1", "515.48.07"}, {"11.7.0", "515.43.04"},
		{"11.6.2", "510.47.03"}, {"11.6.1", "510.47.03"}, {"11.6.0", "510.39.01"}, {"11.5.0", "495.29.05"},
		{"11.4.4", "470.82.01"}, {"11.4.3", "470.82.01"}, {"11.4.2", "470.57.02"}, {"11.4.1", "470.57.02"}, {"11.4.0", "470.42.01"},
		{"11.3.0", "465.19.01"}, {"11.2.2", "460.32.03"}, {"11.2.1", "460.32.03"}, {"11.2.0", "460.27.03"},
		{"11.1.1", "455.32"}, {"11.1.0", "455.23"}, {"11.0.1", "450.51.06"}, {"11.0.0", "450.51.05"},
	}
}

// Floor is the least driver that runs programs of a whole CUDA major, by
// minor-version compatibility; false for a major that is in no table. What is
// older than 11 runs wherever 11 does: drivers are backward compatible.
func Floor(major int) (driver string, known bool) {
	switch {
	case major == 13:
		return "580.65.06", true
	case major == 12:
		return "525.60.13", true
	case major > 0 && major <= 11:
		return "450.80.02", true
	}
	return "", false
}

// Serves is the highest CUDA that a driver serves, "12.4", as nvidia-smi's
// banner prints it; "" for one older than the table.
func Serves(driver string) string {
	for _, r := range Releases() {
		if strings.HasSuffix(r.CUDA, ".0") && Compare(driver, r.Driver) >= 0 {
			return strings.TrimSuffix(r.CUDA, ".0")
		}
	}
	return ""
}

// firstDriver is the first driver that serves a CUDA version, "" where no table tells.
func firstDriver(cuda string) string {
	best := ""
	for _, r := range Releases() {
		if Compare(strings.TrimSuffix(r.CUDA, ".0"), cuda) >= 0 {
			best = r.Driver
		}
	}
	return best
}

// minorFloor is the driver that exactly this toolkit was released for, or its
// minor's first release where it is a later update than the table has.
func minorFloor(cuda string) string {
	first := ""
	for _, r := range Releases() {
		if Compare(r.CUDA, cuda) == 0 {
			return r.Driver
		}
		if strings.HasPrefix(cuda+".", strings.TrimSuffix(r.CUDA, "0")) && strings.HasSuffix(r.CUDA, ".0") {
			first = r.Driver
		}
	}
	return first
}

// Compare orders dotted numeric versions ("570.86.15" < "570.124.06"): -1, 0 or
// 1; missing parts are 0. What follows the first character that is neither digit
// nor dot is ignored.
func Compare(a, b string) int {
	x, y := numbers(a), numbers(b)
	for i := range max(len(x), len(y)) {
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

func numbers(v string) []int {
	end := strings.IndexFunc(v, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
	if end >= 0 {
		v = v[:end]
	}
	var out []int
	for part := range strings.SplitSeq(v, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return out
		}
		out = append(out, n)
	}
	return out
}

func major(version string) int {
	if n := numbers(version); len(n) > 0 {
		return n[0]
	}
	return 0
}
