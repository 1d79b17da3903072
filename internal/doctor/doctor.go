// Package doctor finds what is wrong in a living cluster from the objects of
// its API: nodes, the GPU Operator and its operands, and pods that ask for GPUs
// and do not run. Everything here is pure.
package doctor

import (
	"fmt"
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuctl/gpuctl/internal/cuda"
	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/kube"
)

// unprovenTaint is the key of the taint of nodes that have not passed their test.
const unprovenTaint = "gpuctl.dev/unproven"

// Seen is a cluster at one moment.
type Seen struct {
	kube.Objects
	// GPUNodes are nodes whose machines have NVIDIA GPUs, as the machines
	// themselves or gpuctl.yaml say. Without them nothing can be missing.
	GPUNodes []string
	// SecondEngines are nodes on whose machines a container engine runs beside the cluster's.
	SecondEngines []string
	// Faults are what machines say of broken GPUs, by node: Xid, ECC, a GPU that
	// fell off the bus.
	Faults map[string][]diag.Finding
	// Tails are ends of logs of pods with GPUs, by namespace/name. Only lines that
	// the catalogue knows are ever told on.
	Tails map[string]string
	// Unfit says why a program of an image cannot run with a node's driver, ""
	// where it can or nobody knows. Nil knows nothing.
	Unfit func(image, node string) string
	// Images are what images of pods say of CUDA, by reference, and Hosts what the
	// nodes have for them. What is in neither is not judged.
	Images map[string]cuda.Image
	Hosts  map[string]cuda.Node
	// PluginConfigs are configurations of the device plugin, by where they stand.
	PluginConfigs map[string]string
}

// Findings says what is wrong, nodes first, then the operator, then pods.
// diag.Reduce hides what follows from something else.
func Findings(seen Seen) []diag.Finding {
	e := &exam{seen: seen, events: map[string][]corev1.Event{}}
	for _, event := range seen.Events {
		of := event.InvolvedObject
		key := of.Kind + "/" + of.Namespace + "/" + of.Name
		e.events[key] = append(e.events[key], event)
	}
	e.nodes()
	e.operator()
	e.operands()
	e.pods()
	e.refusals()
	e.pluginConfig()
	return e.found
}

type exam struct {
	seen   Seen
	events map[string][]corev1.Event
	found  []diag.Finding
}

func (e *exam) raise(code diag.Code, node, format string, args ...any) {
	f := diag.Found(code, node, fmt.Sprintf(format, args...))
	for _, have := range e.found {
		if have == f {
			return
		}
	}
	e.found = append(e.found, f)
}

func (e *exam) inform(code diag.Code, node, format string, args ...any) {
	before := len(e.found)
	e.raise(code, node, format, args...)
	if len(e.found) > before {
		e.found[before].Severity = diag.Informs
	}
}

func (e *exam) eventsOf(p *corev1.Pod) []corev1.Event {
	return e.events["Pod/"+p.Namespace+"/"+p.Name]
}

func name(p *corev1.Pod) string { return p.Namespace + "/" + p.Name }

func sorted(of map[string]int64) []string {
	var out []string
	for k := range of {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}

// amount writes resources as people do: "2 nvidia.com/gpu".
func amount(of map[string]int64) string {
	var parts []string
	for _, k := range sorted(of) {
		parts = append(parts, fmt.Sprintf("%d %s", of[k], k))
	}
	return strings.Join(parts, ", ")
}
