package diag

import (
	"regexp"
	"time"
)

// ClockBehind reads from a certificate error by how much the clock of whoever
// printed it is behind the certificate's first moment. Both times are printed
// with a zone, which is no difference.
func ClockBehind(text string) (time.Duration, bool) {
	m := regexp.MustCompile(`current time (\S+) is before (\S+)`).FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	now, err := time.Parse(time.RFC3339, m[1])
	if err != nil {
		return 0, false
	}
	first, err := time.Parse(time.RFC3339, m[2])
	if err != nil || !first.After(now) {
		return 0, false
	}
	return first.Sub(now), true
}
