package sharing

import (
	"os"
	"strings"
	"testing"
)

func TestKeysSayEverything(t *testing.T) {
	for _, s := range []Spec{
		{}, {Kind: TimeSlicing, Replicas: 4}, {Kind: TimeSlicing, Replicas: 4, Rename: true},
		{Kind: TimeSlicing, Replicas: 16, OnlyOne: true}, {Kind: TimeSlicing, Replicas: 2, Rename: true, OnlyOne: true},
		{Kind: MPS, Replicas: 10}, {Kind: MPS, Replicas: 10, Rename: true},
	} {
		if got, ok := Parse(s.Key()); !ok || got != s {
			t.Errorf("%s is read as %+v, %v; want %+v", s.Key(), got, ok, s)
		}
	}
	for _, key := range []string{"", "mine", "gpuctl-", "gpuctl-time-slicing-", "gpuctl-time-slicing-04", "gpuctl-mps-4-only-one-renamed", "gpuctl-4"} {
		if s, ok := Parse(key); ok {
			t.Errorf("%q is read as %+v", key, s)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("gpuctl-time-slicing-4-renamed-only-one")
	f.Fuzz(func(t *testing.T, key string) {
		if s, ok := Parse(key); ok && s.Key() != key {
			t.Errorf("%q is read as %+v, whose key is %q", key, s, s.Key())
		}
	})
}

func TestPluginConfigs(t *testing.T) {
	for _, tc := range []struct {
		spec Spec
		want string
	}{
		{Spec{}, "version: v1\n"},
		{Spec{Kind: TimeSlicing, Replicas: 4}, "version: v1\nsharing:\n  timeSlicing:\n    resources:\n    - name: nvidia.com/gpu\n      replicas: 4\n"},
		{Spec{Kind: TimeSlicing, Replicas: 4, Rename: true, OnlyOne: true},
			"version: v1\nsharing:\n  timeSlicing:\n    renameByDefault: true\n    failRequestsGreaterThanOne: true\n    resources:\n    - name: nvidia.com/gpu\n      replicas: 4\n"},
		{Spec{Kind: MPS, Replicas: 10, Rename: true}, "version: v1\nsharing:\n  mps:\n    renameByDefault: true\n    resources:\n    - name: nvidia.com/gpu\n      replicas: 10\n"},
	} {
		if got := tc.spec.PluginConfig(); got != tc.want {
			t.Errorf("%s:\n%s\nwant\n%s", tc.spec, got, tc.want)
		}
		if refused, dead := CheckDocument(tc.spec.PluginConfig()); len(refused)+len(dead) > 0 {
			t.Errorf("%s does not pass the check of users' files: %v, %v", tc.spec, refused, dead)
		}
	}
}

func TestWhatNVIDIARejects(t *testing.T) {
	h100 := Card{Model: "H100", Device: "2331", Compute: "9.0"}
	v100 := Card{Model: "V100", Device: "1db4", Compute: "7.0"}
	sliced := Card{Model: "A100", Device: "20b2", Compute: "8.0", MIG: true}
	for _, tc := range []struct {
		name  string
		spec  Spec
		cards []Card
		want  string // part of the only reason, "" for none
	}{
		{"nothing shared", Spec{}, []Card{sliced}, ""},
		{"time-slicing", Spec{Kind: TimeSlicing, Replicas: 4}, []Card{h100}, ""},
		{"many slices are allowed", Spec{Kind: TimeSlicing, Replicas: 16384}, []Card{h100}, ""},
		{"one is not sharing", Spec{Kind: TimeSlicing, Replicas: 1}, []Card{h100}, "not sharing"},
		{"none", Spec{Kind: MPS}, []Card{h100}, "no number of pods"},
		{"48 clients", Spec{Kind: MPS, Replicas: 48}, []Card{h100}, ""},
		{"49 clients", Spec{Kind: MPS, Replicas: 49}, []Card{h100}, "at most 48"},
		{"16 clients on an old card", Spec{Kind: MPS, Replicas: 16}, []Card{v100, v100}, ""},
		{"17 clients on an old card", Spec{Kind: MPS, Replicas: 17}, []Card{v100, v100}, "at most 16"},
		{"MPS on slices", Spec{Kind: MPS, Replicas: 4}, []Card{h100, sliced}, "MIG mode"},
		{"a key without effect", Spec{Kind: MPS, Replicas: 4, OnlyOne: true}, []Card{h100}, "refuses such requests always"},
	} {
		got := tc.spec.Refuse(tc.cards)
		if tc.want == "" && len(got) == 0 {
			continue
		}
		if len(got) != 1 || tc.want == "" || !strings.Contains(got[0], tc.want) {
			t.Errorf("%s: %q, want one reason with %q", tc.name, got, tc.want)
		}
	}
}

func TestMIGProfilesByCard(t *testing.T) {
	a100, h100nvl := Card{Model: "A100 80GB", Device: "20b2"}, Card{Model: "H100 NVL", Device: "2321"}
	a10 := Card{Model: "A10", Device: "2236"}
	old := Card{Model: "A100 80GB", Device: "20b2", Driver: "450.51.06"}
	for _, tc := range []struct {
		profile string
		cards   []Card
		want    string
	}{
		{"1g.10gb", []Card{a100, a100}, ""},
		{"balanced", []Card{h100nvl}, ""},
		{"1g.5gb", []Card{a100}, "no profile 1g.5gb; it has 1g.10gb"},
		{"1g.12gb", []Card{a10}, "has no MIG"},
		{"balanced", []Card{a100, h100nvl}, "mixes A100 80GB and H100 NVL"},
		{"1g.10gb:2 2g.20gb:1 3g.40gb:1", []Card{a100}, ""},
		{"3g.40gb:1 4g.40gb:1", []Card{a100}, ""},
		{"3g.40gb:2 1g.10gb:2", []Card{a100}, "take 8 compute slices of 7"},
		{"1g.20gb:3 3g.40gb:1", []Card{a100}, "take 10 memory slices of 8"},
		{"7g.80gb:2", []Card{a100}, "at most 1 of 7g.80gb fit"},
		{"1g.10gb", []Card{old}, "MIG from driver 450.80.02 on; driver 450.51.06 runs"},
	} {
		got := strings.Join(Spec{Kind: MIG, Strategy: Mixed, Layout: tc.profile}.Refuse(tc.cards), "; ")
		if (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s on %v: %q, want %q", tc.profile, tc.cards, got, tc.want)
		}
	}
	for _, table := range migTables() {
		for _, device := range strings.Fields(table.devices) {
			for _, p := range Profiles(device) {
				if p.Most < 1 || p.Most > 7 || !strings.Contains(p.Name, "g.") {
					t.Errorf("%s: %+v", table.card, p)
				}
			}
		}
	}
}

func TestFilesOfUsers(t *testing.T) {
	for _, tc := range []struct {
		file          string
		refused, dead int
	}{{"062/wrong.yaml", 0, 2}, {"062/right.yaml", 0, 0}, {"064/both.yaml", 1, 1}} {
		text, err := os.ReadFile("testdata/" + tc.file)
		if err != nil {
			t.Fatal(err)
		}
		refused, dead := CheckDocument(string(text))
		if len(refused) != tc.refused || len(dead) != tc.dead {
			t.Errorf("%s: refused %q, dead %q; want %d and %d", tc.file, refused, dead, tc.refused, tc.dead)
		}
	}
	refused, dead := CheckDocument("sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, rename: x, replicas: 1}]}}")
	if len(refused) != 1 || len(dead) != 1 {
		t.Errorf("replicas of 1 and rename: %q, %q", refused, dead)
	}
	if refused, _ := CheckDocument("- a\n- b"); len(refused) != 1 {
		t.Errorf("a list: %q", refused)
	}
}

func FuzzCheckDocument(f *testing.F) {
	f.Add("sharing: {mps: {resources: [{replicas: 49}]}}")
	f.Fuzz(func(t *testing.T, text string) {
		refused, dead := CheckDocument(text)
		for _, line := range append(refused, dead...) {
			if line == "" {
				t.Errorf("%q: an empty reason", text)
			}
		}
	})
}

func TestSeenAndMissing(t *testing.T) {
	shared := map[string]string{"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.sharing-strategy": "time-slicing"}
	four := Spec{Kind: TimeSlicing, Replicas: 4}
	if s := Seen(shared, map[string]int64{GPU: 8}); s != four {
		t.Errorf("seen %+v", s)
	}
	if s := Seen(map[string]string{"nvidia.com/gpu.replicas": "1", "nvidia.com/gpu.sharing-strategy": "none"}, map[string]int64{GPU: 2}); s != (Spec{}) {
		t.Errorf("seen %+v on a node that shares nothing", s)
	}
	// NVIDIA/k8s-device-plugin#929: 2 cards at 10 replicas.
	mps := map[string]string{"nvidia.com/gpu.count": "2", "nvidia.com/gpu.replicas": "10", "nvidia.com/gpu.sharing-strategy": "mps"}
	if s := Seen(mps, map[string]int64{GPU: 20}); s.Kind != MPS || s.Replicas != 10 {
		t.Errorf("seen %+v", s)
	}
	if m := four.Missing(2, shared, map[string]int64{GPU: 8}, map[string]int64{GPU: 8}); len(m) > 0 {
		t.Errorf("missing %q", m)
	}
	if m := four.Missing(2, nil, map[string]int64{GPU: 2}, map[string]int64{GPU: 2}); len(m) != 4 {
		t.Errorf("missing %q, want capacity, allocatable and two labels", m)
	}
	renamed := Spec{Kind: TimeSlicing, Replicas: 4, Rename: true}
	left := map[string]int64{GPU: 2, SharedGPU: 8}
	if m := renamed.Missing(2, shared, left, map[string]int64{GPU: 0, SharedGPU: 8}); len(m) > 0 {
		t.Errorf("capacity of the old name stays a while, and that is missing: %q", m)
	}
	if m := renamed.Missing(2, shared, left, left); len(m) != 1 {
		t.Errorf("the old name is still allocatable: %q", m)
	}
}
