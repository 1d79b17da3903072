package config

import (
	"testing"

	"github.com/gpuctl/gpuctl/internal/sharing"
)

func TestSharingHasAShortForm(t *testing.T) {
	for text, want := range map[string]sharing.Spec{
		"{timeSlicing: 4}":             {Kind: sharing.TimeSlicing, Replicas: 4},
		"{timeSlicing: {replicas: 4}}": {Kind: sharing.TimeSlicing, Replicas: 4},
		"{mps: 10}":                    {Kind: sharing.MPS, Replicas: 10},
		"{timeSlicing: {replicas: 4, renameByDefault: true, failRequestsGreaterThanOne: true}}": {
			Kind: sharing.TimeSlicing, Replicas: 4, Rename: true, OnlyOne: true},
		"{mig: 1g.10gb}":                             {Kind: sharing.MIG, Strategy: sharing.Single, Layout: "1g.10gb"},
		"{mig: all-1g.10gb}":                         {Kind: sharing.MIG, Strategy: sharing.Single, Layout: "1g.10gb"},
		"{mig: {profile: 1g.10gb, strategy: mixed}}": {Kind: sharing.MIG, Strategy: sharing.Mixed, Layout: "1g.10gb"},
		"{mig: balanced}":                            {Kind: sharing.MIG, Strategy: sharing.Mixed, Layout: sharing.Balanced},
		"{mig: {slices: {3g.40gb: 1, 1g.10gb: 2}}}":  {Kind: sharing.MIG, Strategy: sharing.Mixed, Layout: "1g.10gb:2 3g.40gb:1"},
		"{}": {},
		"~":  {},
	} {
		c, err := Parse([]byte("apiVersion: gpuctl.dev/v1alpha1\nkind: Cluster\nmetadata: {name: a}\nspec: {groups: [{name: g, sharing: "+
			text+"}], machines: [{host: 203.0.113.1, group: g}]}\n"), "f")
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := c.Group("g").Spec(); got != want {
			t.Errorf("%s is %+v, want %+v", text, got, want)
		}
	}
}
