package smoke

import "testing"

func TestParseProofRefuses(t *testing.T) {
	for _, bad := range []string{"", "{", `{"uuids":[]}`, `{"uuids":["GPU-1"]}`} {
		if _, err := ParseProof(bad); err == nil {
			t.Errorf("%q is no proof", bad)
		}
	}
}

func FuzzParseProof(f *testing.F) {
	f.Add(`{"time":"2026-09-01T12:00:00Z","uuids":["GPU-1"],"image":"x"}`)
	f.Fuzz(func(t *testing.T, text string) {
		if p, err := ParseProof(text); err == nil && len(p.UUIDs) == 0 {
			t.Errorf("%q names no GPU", text)
		}
	})
}
