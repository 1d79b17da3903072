package bootstrap

import (
	"fmt"
	"sort"
	"strings"

	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/kube"
	"github.com/gpuctl/gpuctl/internal/sharing"
	"github.com/gpuctl/gpuctl/internal/smoke"
)

// sharingTitle names what pods ask for and how many there are before and after.
func sharingTitle(n kube.Node, joined bool, want sharing.Spec, count int) string {
	offers := want.Offers(count)
	var parts []string
	for _, resource := range []string{sharing.GPU, sharing.SharedGPU} {
		before := n.Capacity[resource]
		if !joined && resource == sharing.GPU {
			before = int64(count)
		}
		if before != 0 || offers[resource] != 0 {
			parts = append(parts, fmt.Sprintf("%s %d -> %d", resource, before, offers[resource]))
		}
	}
	what := "share " + gpus(count) + " by " + string(want.Kind)
	if want.Kind == sharing.Whole {
		what = "give pods whole GPUs"
	}
	return what + " (" + strings.Join(parts, ", ") + ")"
}

func sharingChanges(want sharing.Spec) []string {
	label := "label " + sharing.ConfigLabel + " goes"
	if want.Kind != sharing.Whole {
		label = "label " + sharing.ConfigLabel + "=" + want.Key()
	}
	changes := []string{label, "the device plugin and feature discovery of the node are restarted",
		"pods ask for resources: {limits: {" + want.Resource() + ": 1}}"}
	if c := want.Caution(); c != "" {
		changes = append(changes, c)
	}
	return changes
}

// sharingFindings say what a change of sharing does to the pods that come and
// to those that are there.
func sharingFindings(machine string, want sharing.Spec, state kube.State) []diag.Finding {
	var found []diag.Finding
	if c := want.Caution(); c != "" {
		found = append(found, diag.Found("sharing-no-isolation", machine, c))
	}
	if want.Rename {
		found = append(found, diag.Found("sharing-renamed", machine, "pods must ask for "+sharing.SharedGPU+"; those that ask for "+sharing.GPU+" stay Pending"))
	}
	if want.Replicas >= sharing.Absurd {
		found = append(found, diag.Found("sharing-absurd", machine, fmt.Sprintf("%d pods for each GPU", want.Replicas)))
	}
	var held []string
	for _, p := range state.Pods {
		if p.Node == machine && p.Namespace != smoke.Namespace {
			held = append(held, p.Namespace+"/"+p.Name)
		}
	}
	if len(held) > 0 {
		sort.Strings(held)
		found = append(found, diag.Found("sharing-pods-stay", machine, strings.Join(held, ", ")))
	}
	return found
}

// countGPUs fills a view's counts: a shared GPU is one GPU, however many pods it takes.
func (v *NodeView) countGPUs(n kube.Node, state kube.State) {
	shared := sharing.Seen(n.Labels, n.Allocatable)
	v.GPUs = n.Capacity[shared.Resource()] / int64(shared.Units())
	v.Allocatable, v.InUse = n.Allocatable[shared.Resource()], state.Requested(n.Name)[shared.Resource()]
	if shared.Kind != sharing.Whole {
		v.Sharing, v.Replicas, v.Resource = shared.String(), int64(shared.Units()), shared.Resource()
	}
}
