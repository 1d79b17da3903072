package smoke

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// GPU is one GPU as the machine itself lists it (nvidia-smi -L over SSH).
type GPU struct {
	// UUID is GPU-... or, for a slice, MIG-...
	UUID string `json:"uuid"`
	Name string `json:"name,omitempty"`
	// Of is the UUID of the GPU that a slice is part of.
	Of string `json:"of,omitempty"`
	// Compute is the compute capability, "9.0"; empty where it is not known.
	Compute string `json:"compute,omitempty"`
}

// Unknown stands for a count that nobody could observe.
const Unknown = -1

// Node is what is known of a node before its test.
type Node struct {
	// Name is the Kubernetes node name.
	Name string
	// Host are the GPUs as the machine lists them; nil when the machine could not be asked. Without
	// them nothing can be proven, only counted.
	Host []GPU
	// PCI is the number of NVIDIA display controllers on the PCI bus, or Unknown.
	PCI int
	// Remote: the node is known by the cluster alone. Host is then what the cluster's own
	// exporter says that the driver lists, and the bus cannot be counted.
	Remote bool
	// Resource is what pods ask for; empty means nvidia.com/gpu.
	Resource string
	// Allocatable is how much of it the node offers; Requested is what pods that have not ended ask of it.
	Allocatable, Requested int
	// Driver is the driver's version, Units how many schedulable units one GPU is shared into (0 and 1: not shared).
	Driver string
	Units  int
	// Beside: each unit goes to a pod of its own, side by side, though none is shared: MIG slices.
	Beside bool
}

// resource is what pods ask for.
func (n Node) resource() corev1.ResourceName {
	if n.Resource != "" {
		return corev1.ResourceName(n.Resource)
	}
	return Resource
}

// key tells the tests of one node apart: there is one for each profile of slices.
func (n Node) key() string {
	if n.Beside {
		return n.Name + " " + n.Resource
	}
	return n.Name
}

// free is how many units nobody has asked for.
func (n Node) free() int { return max(n.Allocatable-n.Requested, 0) }

// shared: a request of more than one unit of a shared GPU is refused or means
// nothing (k8s-device-plugin#443, #929), so a shared node is asked for one. A
// program computes on one slice of MIG, however many its pod has.
func (n Node) shared() bool { return n.Units > 1 || n.Beside }

// ask is how many units the test takes.
func (n Node) ask() int {
	if n.shared() {
		return min(n.free(), 1)
	}
	return n.free()
}

// Limits bound the parts of a test; a zero field means its default.
type Limits struct {
	// Placed: until the scheduler has placed the pod; 1 minute.
	Placed time.Duration
	// Started: from there until it runs, the image's pull with it; 10 minutes.
	Started time.Duration
	// Trouble: how long an image that cannot be pulled or a container that cannot be made is borne; 90 seconds.
	Trouble time.Duration
	// Ran: from its start to its end; 5 minutes.
	Ran time.Duration
}

func (l Limits) withDefaults() Limits {
	or := func(d *time.Duration, def time.Duration) {
		if *d <= 0 {
			*d = def
		}
	}
	or(&l.Placed, time.Minute)
	or(&l.Started, 10*time.Minute)
	or(&l.Trouble, 90*time.Second)
	or(&l.Ran, 5*time.Minute)
	return l
}

// Options say how to test.
type Options struct {
	// Image is the reference to run; Programs are where vectorAdd may lie in it, tried in order.
	Image    string
	Programs []string
	// MinDriver is the lowest driver the image runs on ("525.60.13"); empty checks nothing.
	MinDriver string
	// CUDA is what the image was built with ("12.5"); empty checks nothing.
	CUDA string
	// RuntimeClass is set when pods need one ("nvidia"); empty with CDI.
	RuntimeClass string
	// Taints are keys of further NoSchedule taints the pod must bear.
	Taints []string
	Limits Limits
}
