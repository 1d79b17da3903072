package sharing

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
)

// Card is what the rules need to know of one GPU.
type Card struct {
	// Model is nvidia-smi's name ("NVIDIA A100-SXM4-80GB").
	Model string
	// Device is the PCI device id ("20b2"), empty where it is not known.
	Device string
	// Compute is the CUDA compute capability ("8.0"), empty where it is not known.
	Compute string
	// Driver is the version that runs ("580.95.05"), empty where it is not known.
	Driver string
	// MIG says that the GPU is in MIG mode now.
	MIG bool
}

// Absurd is the number of replicas from which a plan warns: the plugin takes
// 16384 too (k8s-device-plugin#1433).
const Absurd = 64

// CheckReplicas says what is wrong with a number of pods for each GPU whatever
// the card is, "" if nothing is.
func CheckReplicas(kind Kind, replicas int) string {
	switch {
	case replicas < 1:
		return fmt.Sprintf("%d is no number of pods for each GPU", replicas)
	case replicas == 1:
		return "1 pod for each GPU is not sharing; leave sharing out"
	case kind == MPS && replicas > 48:
		return fmt.Sprintf("%d clients; MPS takes at most 48 on one GPU (16 where the compute capability is below 7.5)", replicas)
	}
	return ""
}

// MPSClients is how many clients NVIDIA's plugin lets share one GPU. It calls
// the limit one of Volta and compares with compute capability 7.5 (k8s-device-plugin,
// cmd/mps-control-daemon/mps/device.go), so that V100 (7.0) has 16.
func MPSClients(compute string) int {
	major, rest, _ := strings.Cut(compute, ".")
	m, err1 := strconv.Atoi(major)
	n, err2 := strconv.Atoi(rest)
	if err1 != nil || err2 != nil || m > 7 || m == 7 && n >= 5 {
		return 48
	}
	return 16
}

// Refuse lists what NVIDIA rejects about sharing these cards of one node.
func (s Spec) Refuse(cards []Card) []string {
	switch s.Kind {
	case Whole:
		return nil
	case MIG:
		return s.refuseMIG(cards)
	}
	var why []string
	if text := CheckReplicas(s.Kind, s.Replicas); text != "" {
		why = append(why, text)
	}
	if s.Kind != MPS {
		return why
	}
	limits := map[string]int{}
	for _, c := range cards {
		if c.MIG {
			why = append(why, c.Model+" is in MIG mode: NVIDIA's device plugin refuses MPS on MIG devices")
		}
		if limit := MPSClients(c.Compute); s.Replicas > limit && limit < 48 {
			limits[c.Model+" has compute capability "+c.Compute] = limit
		}
	}
	for what, limit := range limits {
		why = append(why, fmt.Sprintf("%d clients; %s: MPS takes at most %d there", s.Replicas, what, limit))
	}
	if s.OnlyOne {
		why = append(why, "failRequestsGreaterThanOne is for time-slicing: MPS refuses such requests always")
	}
	sort.Strings(why)
	return compact(why)
}

func compact(sorted []string) []string {
	var out []string
	for i, text := range sorted {
		if i == 0 || text != sorted[i-1] {
			out = append(out, text)
		}
	}
	return out
}

// Beside lists what NVIDIA rejects about the ways in which the groups of one
// cluster share: the operator has one MIG strategy for all nodes, and the device
// plugin takes no MPS under the mixed one (k8s-device-plugin cmd/nvidia-device-plugin).
func Beside(groups map[string]Spec) []string {
	by := map[string][]string{}
	for name, s := range groups {
		switch {
		case s.Kind == MIG:
			by[s.Strategy] = append(by[s.Strategy], name)
		case s.Kind == MPS:
			by[string(MPS)] = append(by[string(MPS)], name)
		}
	}
	for _, list := range by {
		sort.Strings(list)
	}
	var why []string
	if len(by[Single]) > 0 && len(by[Mixed]) > 0 {
		why = append(why, fmt.Sprintf("%s: MIG single, %s: MIG mixed; the operator has one MIG strategy for the whole cluster; say strategy: mixed in both",
			groupsOf(by[Single]), groupsOf(by[Mixed])))
	}
	if len(by[Mixed]) > 0 && len(by[string(MPS)]) > 0 {
		why = append(why, fmt.Sprintf("%s: MIG mixed, %s: MPS; the MIG strategy holds for the whole cluster, and the device plugin refuses MPS under mixed: say strategy: single",
			groupsOf(by[Mixed]), groupsOf(by[string(MPS)])))
	}
	return why
}

func groupsOf(names []string) string {
	if len(names) == 1 {
		return "group " + names[0]
	}
	return "groups " + strings.Join(names, ", ")
}
