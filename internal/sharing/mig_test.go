package sharing

import (
	"strings"
	"testing"
)

func TestLayoutsOfACard(t *testing.T) {
	h100, a30 := Card{Device: "2331"}, Card{Device: "20b7"}
	for _, tc := range []struct {
		spec   Spec
		card   Card
		slices string
		config string
		offers map[string]int64
	}{
		{Spec{Kind: MIG, Strategy: Single, Layout: "1g.10gb"}, h100, "1g.10gb:7", "all-1g.10gb", map[string]int64{GPU: 14, SharedGPU: 0}},
		{Spec{Kind: MIG, Strategy: Mixed, Layout: "3g.40gb"}, h100, "3g.40gb:2", "all-3g.40gb", map[string]int64{GPU: 0, SharedGPU: 0, "nvidia.com/mig-3g.40gb": 4}},
		{Spec{Kind: MIG, Strategy: Mixed, Layout: Balanced}, h100, "1g.10gb:2 2g.20gb:1 3g.40gb:1", "all-balanced",
			map[string]int64{GPU: 0, SharedGPU: 0, "nvidia.com/mig-1g.10gb": 4, "nvidia.com/mig-2g.20gb": 2, "nvidia.com/mig-3g.40gb": 2}},
		{Spec{Kind: MIG, Strategy: Mixed, Layout: Balanced}, a30, "1g.6gb:2 2g.12gb:1", "all-balanced",
			map[string]int64{GPU: 0, SharedGPU: 0, "nvidia.com/mig-1g.6gb": 4, "nvidia.com/mig-2g.12gb": 2}},
		{Spec{Kind: MIG, Strategy: Mixed, Layout: "1g.10gb:3 4g.40gb:1"}, h100, "1g.10gb:3 4g.40gb:1", "gpuctl-1g.10gb.x3_4g.40gb.x1",
			map[string]int64{GPU: 0, SharedGPU: 0, "nvidia.com/mig-1g.10gb": 6, "nvidia.com/mig-4g.40gb": 2}},
		{Spec{Kind: MIG, Strategy: Mixed, Layout: "1g.10gb+me"}, h100, "1g.10gb+me:1", "gpuctl-1g.10gb_pme", map[string]int64{GPU: 0, SharedGPU: 0, "nvidia.com/mig-1g.10gb.me": 2}},
		{Spec{Kind: MIG, Strategy: Single, Layout: "1g.5gb"}, h100, "", "all-1g.5gb", map[string]int64{GPU: 0, SharedGPU: 0}},
	} {
		got := tc.spec.On(tc.card)
		if got.Slices != tc.slices || got.MIGConfig() != tc.config {
			t.Errorf("%s: %q by %q, want %q by %q", tc.spec, got.Slices, got.MIGConfig(), tc.slices, tc.config)
		}
		offers := got.Offers(2)
		for resource, want := range tc.offers {
			if offers[resource] != want || len(offers) != len(tc.offers) {
				t.Errorf("%s offers %v, want %v", tc.spec, offers, tc.offers)
				break
			}
		}
	}
}

func TestOwnListOfTheMIGManager(t *testing.T) {
	standard := Spec{Kind: MIG, Strategy: Mixed, Layout: "1g.10gb"}
	if text := MIGParted([]Spec{standard, {Kind: TimeSlicing, Replicas: 2}}); text != "" {
		t.Errorf("the operator's list has it, and an own one is made:\n%s", text)
	}
	got := MIGParted([]Spec{standard, {Kind: MIG, Strategy: Mixed, Layout: "1g.10gb:3 4g.40gb:1"}})
	for _, want := range []string{
		"version: v1\nmig-configs:\n  all-disabled:\n  - devices: all\n    mig-enabled: false\n",
		"[\"0x20B210DE\", \"0x20B510DE\", ",
		"  gpuctl-1g.10gb.x3_4g.40gb.x1:\n  - devices: all\n    mig-enabled: true\n    mig-devices:\n      \"1g.10gb\": 3\n      \"4g.40gb\": 1\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

func TestMIGLabelsAndWhatIsMissing(t *testing.T) {
	single := Spec{Kind: MIG, Strategy: Single, Layout: "1g.10gb"}.On(Card{Device: "2331"})
	labels := map[string]string{MIGConfigLabel: "all-1g.10gb", MIGStateLabel: "success", "nvidia.com/mig.strategy": Single, "nvidia.com/gpu.count": "14",
		"nvidia.com/gpu.product": "NVIDIA-H100-PCIe-MIG-1g.10gb"}
	have := map[string]int64{GPU: 14}
	if m := single.Missing(2, labels, have, have); len(m) > 0 {
		t.Errorf("missing %q", m)
	}
	seen := Seen(labels, have)
	if seen.Kind != MIG || seen.Strategy != Single || seen.Slices != "1g.10gb:14" || seen.Resource() != GPU {
		t.Errorf("seen %+v", seen)
	}
	// NVIDIA/gpu-operator#603: success with nothing to show is not done.
	if m := single.Missing(2, labels, nil, nil); len(m) != 2 {
		t.Errorf("the state is success and nothing is offered: missing %q", m)
	}
	labels[MIGStateLabel] = "pending"
	if m := single.Missing(2, labels, have, have); len(m) != 1 || !strings.Contains(m[0], "pending") {
		t.Errorf("missing %q", m)
	}
	mixed := map[string]string{MIGConfigLabel: "all-balanced", "nvidia.com/gpu.product": "NVIDIA-H100-PCIe"}
	seen = Seen(mixed, map[string]int64{GPU: 0, "nvidia.com/mig-3g.40gb": 1, "nvidia.com/mig-1g.10gb": 2})
	if got := strings.Join(seen.Resources(), " "); seen.Strategy != Mixed || got != "nvidia.com/mig-1g.10gb nvidia.com/mig-3g.40gb" {
		t.Errorf("seen %+v with %s", seen, got)
	}
	if s := Seen(map[string]string{MIGConfigLabel: MIGOff}, map[string]int64{GPU: 2}); s != (Spec{}) {
		t.Errorf("seen %+v where MIG is off", s)
	}
}

func TestWaysThatCannotStandInOneCluster(t *testing.T) {
	single, mixed := Spec{Kind: MIG, Strategy: Single, Layout: "1g.10gb"}, Spec{Kind: MIG, Strategy: Mixed, Layout: Balanced}
	mps := Spec{Kind: MPS, Replicas: 4}
	for _, tc := range []struct {
		groups map[string]Spec
		want   string
	}{
		{map[string]Spec{"a": single, "b": mps, "c": {}, "d": {Kind: TimeSlicing, Replicas: 2}}, ""},
		{map[string]Spec{"a": single, "b": mixed}, "one MIG strategy for the whole cluster"},
		{map[string]Spec{"a": mixed, "b": mps}, "refuses MPS under mixed"},
	} {
		got := strings.Join(Beside(tc.groups), "; ")
		if (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%v: %q, want %q", tc.groups, got, tc.want)
		}
	}
}

func FuzzParseSlices(f *testing.F) {
	f.Add("1g.10gb:2 3g.40gb:1")
	f.Add("1g.24gb+me.all:1")
	f.Fuzz(func(t *testing.T, text string) {
		s, ok := ParseSlices(text)
		if !ok {
			return
		}
		again, ok := ParseSlices(s.String())
		if !ok || again.String() != s.String() {
			t.Errorf("%q is read as %q, and that as %q", text, s, again)
		}
	})
}
