package scenario

import (
	"strings"
	"testing"
)

func TestCutsLikeTheDriver(t *testing.T) {
	g := H100(1).For("a").GPUs[0]
	for _, tc := range []struct {
		profiles, refused string
	}{
		{"1g.10gb 1g.10gb 1g.10gb 1g.10gb 1g.10gb 1g.10gb 1g.10gb", ""},
		{"4g.40gb 3g.40gb", ""},
		{"3g.40gb 2g.20gb 1g.10gb 1g.10gb", ""},
		{"", ""},
		{"3g.40gb 3g.40gb 1g.10gb", "insufficient resources"},
		{"7g.80gb 1g.10gb", "insufficient resources"},
		{"1g.5gb", "has no profile"},
	} {
		got, err := g.Cut(strings.Fields(tc.profiles))
		if (err == nil) != (tc.refused == "") || err != nil && !strings.Contains(err.Error(), tc.refused) {
			t.Errorf("%q: %v, want %q", tc.profiles, err, tc.refused)
		}
		seen := map[string]bool{}
		for _, s := range got {
			if seen[s.UUID] || !strings.HasPrefix(s.UUID, "MIG-") {
				t.Errorf("%q: UUIDs of %+v", tc.profiles, got)
			}
			seen[s.UUID] = true
		}
	}
	if _, err := T4(1).For("a").GPUs[0].Cut([]string{"1g.10gb"}); err == nil {
		t.Error("a T4 is cut")
	}
}

func TestMinorsOfInstances(t *testing.T) {
	text := MIGMinors(2)
	gi, ci := Slice{GI: 3}.Caps(1)
	if gi != 165 || !strings.Contains(text, "gpu1/gi3/access 165\ngpu1/gi3/ci0/access 166\n") || ci != 166 {
		t.Errorf("%d, %d", gi, ci)
	}
	if !strings.HasPrefix(text, "config 1\nmonitor 2\ngpu0/gi0/access 3\n") {
		t.Errorf("%.80s", text)
	}
}
