package diag

import (
	"testing"
	"time"
)

// Messages of k3s-io/k3s#5163: the time zone is no part of the difference.
func TestAClockThatIsBehind(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"x509: certificate has expired or is not yet valid: current time 2022-07-22T18:55:59+12:00 is before 2022-07-22T07:45:55Z": 49*time.Minute + 56*time.Second,
		"x509: certificate has expired or is not yet valid: current time 2022-10-30T00:11:50Z is before 2022-10-30T22:37:33Z":      22*time.Hour + 25*time.Minute + 43*time.Second,
		"x509: certificate has expired or is not yet valid: current time 2026-01-06T00:00:00Z is after 2025-10-30T22:37:33Z":       0,
		"current time x is before y": 0,
	} {
		got, ok := ClockBehind(text)
		if got != want || ok != (want > 0) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	for text, code := range map[string]Code{
		"x509: certificate has expired or is not yet valid: current time 2022-10-30T00:11:50Z is before 2022-10-30T22:37:33Z": "clock-wrong",
		"x509: certificate has expired or is not yet valid: current time 2026-01-06T00:00:00Z is after 2025-10-30T22:37:33Z":  "certificates-expired",
	} {
		if found := ExplainText(text); len(found) == 0 || found[0].Code != code {
			t.Errorf("%s: %v, want %s", text, found, code)
		}
	}
}
