package bootstrap

import (
	"fmt"
	"slices"
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
	for _, resource := range resourcesOf(n.Capacity, offers) {
		before := n.Capacity[resource]
		if !joined && resource == sharing.GPU {
			before = int64(count)
		}
		if before != 0 || offers[resource] != 0 {
			parts = append(parts, fmt.Sprintf("%s %d -> %d", resource, before, offers[resource]))
		}
	}
	what := "share " + gpus(count) + " by " + string(want.Kind)
	switch want.Kind {
	case sharing.Whole:
		what = "give pods whole GPUs"
	case sharing.MIG:
		what = "cut each of " + gpus(count) + " into " + strings.ReplaceAll(want.Slices, ":", " x")
	}
	return what + " (" + strings.Join(parts, ", ") + ")"
}

// resourcesOf are the resources of a node before and after a change, in a fixed order.
func resourcesOf(before, after map[string]int64) []string {
	all := []string{sharing.GPU, sharing.SharedGPU}
	var cut []string
	for _, resources := range []map[string]int64{before, after} {
		for resource := range resources {
			if strings.HasPrefix(resource, "nvidia.com/mig-") && !slices.Contains(cut, resource) {
				cut = append(cut, resource)
			}
		}
	}
	sort.Strings(cut)
	return append(all, cut...)
}

func sharingChanges(n kube.Node, want sharing.Spec) []string {
	if want.Kind == sharing.MIG {
		changes := []string{"label " + sharing.MIGConfigLabel + "=" + want.MIGConfig() + ": the MIG manager stops the node's operands, cuts the GPUs and starts them again"}
		for _, resource := range want.Resources() {
			changes = append(changes, "pods ask for resources: {limits: {"+resource+": 1}}")
		}
		return changes
	}
	label := "label " + sharing.ConfigLabel + " goes"
	if want.Kind != sharing.Whole {
		label = "label " + sharing.ConfigLabel + "=" + want.Key()
	}
	changes := []string{label}
	if n.Annotations[migAnnotation] != "" {
		changes = []string{"label " + sharing.MIGConfigLabel + "=" + sharing.MIGOff + ": the MIG manager puts the GPUs together again", label}
	}
	changes = append(changes, "the device plugin and feature discovery of the node are restarted",
		"pods ask for resources: {limits: {"+want.Resource()+": 1}}")
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
	if want.Kind == sharing.MIG {
		return append(found, slicesRenamed(machine, want)...)
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
	if shared.Kind == sharing.MIG {
		v.countSlices(n, shared, state)
		return
	}
	v.GPUs = n.Capacity[shared.Resource()] / int64(shared.Units())
	v.Allocatable, v.InUse = n.Allocatable[shared.Resource()], state.Requested(n.Name)[shared.Resource()]
	if shared.Kind != sharing.Whole {
		v.Sharing, v.Replicas, v.Resource = shared.String(), int64(shared.Units()), shared.Resource()
	}
}

// countSlices: how many GPUs the slices are of is known by the node's proof.
func (v *NodeView) countSlices(n kube.Node, shared sharing.Spec, state kube.State) {
	v.Sharing, v.Replicas, v.Resource = shared.String(), 1, strings.Join(shared.Resources(), ", ")
	requested := state.Requested(n.Name)
	for _, resource := range shared.Resources() {
		v.Allocatable, v.InUse = v.Allocatable+n.Allocatable[resource], v.InUse+requested[resource]
	}
	if proof, ok := proofOf(n); ok {
		v.GPUs = int64(len(proof.UUIDs))
	}
}

// slicesRenamed warns of names that pods must change.
func slicesRenamed(machine string, want sharing.Spec) []diag.Finding {
	if want.Strategy != sharing.Mixed {
		return nil
	}
	return []diag.Finding{diag.Found("sharing-renamed", machine,
		"pods must ask for "+strings.Join(want.Resources(), " or ")+"; those that ask for "+sharing.GPU+" stay Pending")}
}
