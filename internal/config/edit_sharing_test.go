package config

import (
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/internal/sharing"
)

func TestSetSharingChangesNothingElse(t *testing.T) {
	const head = "apiVersion: gpuctl.dev/v1alpha1\nkind: Cluster\nmetadata: {name: lab} # mine\nspec:\n"
	const tail = "  machines: # all of them\n    - {host: 203.0.113.1, group: h100}\n"
	four, renamed := sharing.Spec{Kind: sharing.TimeSlicing, Replicas: 4}, sharing.Spec{Kind: sharing.TimeSlicing, Replicas: 8, Rename: true}
	for _, tc := range []struct {
		name, groups, want string
		spec               sharing.Spec
	}{
		{"flow", "  groups: [{name: h100, driver: {mode: keep}}]\n", "  groups: [{name: h100, sharing: {timeSlicing: 4}, driver: {mode: keep}}]\n", four},
		{"block", "  groups:\n    - name: h100 # big\n      driver:\n        mode: keep\n",
			"  groups:\n    - name: h100 # big\n      sharing: {timeSlicing: 4}\n      driver:\n        mode: keep\n", four},
		{"slices", "  groups: [{name: h100, driver: {mode: keep}}]\n", "  groups: [{name: h100, sharing: {mig: 1g.10gb}, driver: {mode: keep}}]\n",
			sharing.Spec{Kind: sharing.MIG, Strategy: sharing.Single, Layout: "1g.10gb"}},
		{"slices of several sizes", "  groups: [{name: h100, sharing: {mps: 2}}]\n", "  groups: [{name: h100, sharing: {mig: {slices: {1g.10gb: 2, 3g.40gb: 1}}}}]\n",
			sharing.Spec{Kind: sharing.MIG, Strategy: sharing.Mixed, Layout: "1g.10gb:2 3g.40gb:1"}},
		{"slices under names of their own", "  groups: [{name: h100}]\n", "  groups: [{name: h100, sharing: {mig: {profile: 1g.10gb, strategy: mixed}}}]\n",
			sharing.Spec{Kind: sharing.MIG, Strategy: sharing.Mixed, Layout: "1g.10gb"}},
		{"another way", "  groups:\n    - {name: h100, sharing: {mps: 4}, driver: {mode: keep}}\n",
			"  groups:\n    - {name: h100, sharing: {timeSlicing: {replicas: 8, renameByDefault: true}}, driver: {mode: keep}}\n", renamed},
		{"a block goes", "  groups:\n    - name: h100\n      sharing:\n        timeSlicing:\n          replicas: 3\n      driver: {mode: keep}\n    - name: b\n",
			"  groups:\n    - name: h100\n      driver: {mode: keep}\n    - name: b\n", sharing.Spec{}},
		{"nothing to do", "  groups: [{name: h100, sharing: {timeSlicing: {replicas: 4}}}]\n", "  groups: [{name: h100, sharing: {timeSlicing: {replicas: 4}}}]\n", four},
	} {
		got, err := SetSharing([]byte(head+tc.groups+tail), "f", "h100", tc.spec)
		if err != nil || string(got) != head+tc.want+tail {
			t.Errorf("%s: %v\n%s\nwant\n%s", tc.name, err, got, head+tc.want+tail)
		}
	}
	for group, want := range map[string]string{"h10": `no group "h10"; there are h100`, "h100": "first field"} {
		_, err := SetSharing([]byte(head+"  groups: [{sharing: {mps: 4}, name: h100}]\n"+tail), "f", group, four)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("group %s: %v, want %q", group, err, want)
		}
	}
}
