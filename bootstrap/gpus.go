package bootstrap

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/bootstrap/nvidia"
	"github.com/gpuctl/gpuctl/internal/inventory"
	"github.com/gpuctl/gpuctl/internal/kube"
	"github.com/gpuctl/gpuctl/internal/sharing"
	"github.com/gpuctl/gpuctl/internal/smoke"
)

// GPUsResult is every GPU of the cluster.
type GPUsResult struct {
	Cluster string    `json:"cluster"`
	GPUs    []GPUInfo `json:"gpus"`
	// Missing says which half could not be asked, and so what is not known.
	Missing []string `json:"missing,omitempty"`
}

// GPUInfo is one GPU, as its machine and the cluster tell of it.
type GPUInfo struct {
	Node string `json:"node"`
	// Index is nvidia-smi's; -1 where the machine could not be asked.
	Index int    `json:"index"`
	UUID  string `json:"uuid,omitempty"`
	// PCI is the address on the bus: 0000:18:00.0.
	PCI       string `json:"pci,omitempty"`
	Model     string `json:"model"`
	MemoryMiB int64  `json:"memoryMiB,omitempty"`
	Driver    string `json:"driver,omitempty"`
	// CUDA is the highest version the driver runs, as feature discovery tells it.
	CUDA string `json:"cuda,omitempty"`
	// MIG is empty for a card without it, else "off", "on" with its slices, or a change that is pending.
	MIG string `json:"mig,omitempty"`
	// Slices are its MIG devices.
	Slices []GPUSlice `json:"slices,omitempty"`
	// Sharing is how the node shares its GPUs; Resource is what pods ask for.
	Sharing  string `json:"sharing,omitempty"`
	Resource string `json:"resource,omitempty"`
	// Users are pods that hold GPUs of the node, namespace/name. UsersSure says
	// that they hold this one; else the cluster does not tell which GPU is whose.
	Users     []string `json:"users"`
	UsersSure bool     `json:"usersSure"`
	// Utilisation is how busy it is in percent, nil where no DCGM exporter tells.
	Utilisation *int `json:"utilisation,omitempty"`
	// Health is "ok", "unknown" or what is wrong.
	Health string `json:"health"`
	// ProvenAt is when this GPU passed the smoke test, nil if it never did.
	ProvenAt *time.Time `json:"provenAt,omitempty"`
}

// GPUSlice is one MIG device.
type GPUSlice struct {
	UUID    string `json:"uuid"`
	Profile string `json:"profile"`
}

// GPUs looks at machines and cluster, and says what it could not see.
func (e *Engine) GPUs(ctx context.Context) (GPUsResult, error) {
	s, err := e.observe(ctx)
	if err != nil {
		return GPUsResult{}, err
	}
	r := e.want.gpuInfos(s)
	loads, missing := e.loads(ctx, s)
	r.loaded(loads)
	r.Missing = append(r.Missing, missing...)
	r.Cluster = e.settings.Inventory.Cluster
	return r, nil
}

// gpuInfos puts together what the two halves tell. It is pure.
func (w wanted) gpuInfos(s sight) GPUsResult {
	r := GPUsResult{GPUs: []GPUInfo{}}
	if !s.cluster.there() {
		r.Missing = append(r.Missing, "the cluster does not answer ("+s.cluster.state.NoAPI+"): sharing, users, CUDA and proofs are not known")
	}
	listed := map[string]bool{}
	for _, m := range w.machines {
		listed[m.Name] = true
		n, _ := s.cluster.state.Node(m.Name)
		if facts, seen := s.facts[m.Name]; seen {
			r.GPUs = append(r.GPUs, fromMachine(m, facts, n, s.cluster.state)...)
			continue
		}
		r.Missing = append(r.Missing, fmt.Sprintf("%s was not reached (%v): index, UUID and health of its GPUs are not known", m.Name, s.unreached[m.Name]))
		r.GPUs = append(r.GPUs, fromNode(n, m.Name, s.cluster.state)...)
	}
	for _, n := range s.cluster.state.Nodes {
		if !listed[n.Name] {
			r.GPUs = append(r.GPUs, fromNode(n, n.Name, s.cluster.state)...)
		}
	}
	return r
}

// fromMachine lists the GPUs of a machine that answered: those of the driver,
// then those that only the bus has.
func fromMachine(m inventory.Machine, facts host.Facts, n kube.Node, state kube.State) []GPUInfo {
	var out []GPUInfo
	known := map[string]bool{}
	for _, g := range facts.SMI.Value.GPUs {
		known[g.PCI] = true
		info := GPUInfo{Node: m.Name, Index: g.Index, UUID: g.UUID, PCI: g.PCI, Model: g.Name, MemoryMiB: g.MemoryMiB,
			Driver: facts.SMI.Value.DriverVersion, MIG: migText(g, n), Health: health(g, facts), ProvenAt: provenAt(g.UUID, n)}
		for _, part := range g.Slices {
			info.Slices = append(info.Slices, GPUSlice{part.UUID, part.Profile})
		}
		out = append(out, info)
	}
	for _, d := range nvidia.GPUs(facts) {
		if known[d.Address] {
			continue
		}
		why := "the driver does not list it"
		if slices.Contains(facts.SMI.Value.Lost, d.Address) {
			why = "lost"
		}
		if facts.Driver.Value.LoadedVersion == "" {
			why = "no driver is loaded"
		}
		out = append(out, GPUInfo{Node: m.Name, Index: -1, PCI: d.Address, Model: nvidia.Model(d), Health: join(append([]string{why}, xidsAt(d.Address, facts)...))})
	}
	return fromCluster(out, n, state)
}

// fromNode lists the GPUs of a node whose machine did not answer, by the labels
// of feature discovery.
func fromNode(n kube.Node, name string, state kube.State) []GPUInfo {
	count, err := strconv.Atoi(n.Labels["nvidia.com/gpu.count"])
	if err != nil || count < 0 || count > 1024 {
		return nil
	}
	var out []GPUInfo
	memory, _ := strconv.ParseInt(n.Labels["nvidia.com/gpu.memory"], 10, 64) // 0 is not known
	for range count {
		out = append(out, GPUInfo{Node: name, Index: -1, Model: strings.TrimSuffix(n.Labels["nvidia.com/gpu.product"], "-SHARED"), MemoryMiB: memory,
			Driver: n.Labels["nvidia.com/cuda.driver-version.full"], Health: "unknown"})
	}
	return fromCluster(out, n, state)
}

// fromCluster adds what the API tells of a node to its GPUs.
func fromCluster(gpus []GPUInfo, n kube.Node, state kube.State) []GPUInfo {
	shared := sharing.Seen(n.Labels, n.Allocatable)
	var users []string
	held := int64(0)
	for _, p := range state.Pods {
		if p.Node == n.Name && n.Name != "" && p.Namespace != smoke.Namespace {
			users = append(users, p.Namespace+"/"+p.Name)
			for _, resource := range shared.Resources() {
				held += p.GPUs[resource]
			}
		}
	}
	sort.Strings(users)
	// One pod that has all of a node, or a node with one GPU: then it is known whose it is.
	sure := len(gpus) == 1 || len(users) == 0 || len(users) == 1 && held == int64(shares(gpus, shared))
	for i := range gpus {
		g := &gpus[i]
		g.Users, g.UsersSure = append([]string{}, users...), sure && n.Name != ""
		if n.Name == "" {
			continue
		}
		g.CUDA, g.Sharing = n.Labels["nvidia.com/cuda.runtime-version.full"], shared.String()
		g.Resource = strings.Join(shared.Resources(), ", ")
	}
	return gpus
}

// shares is how many pods the GPUs of a node take.
func shares(gpus []GPUInfo, shared sharing.Spec) int {
	if shared.Kind != sharing.MIG {
		return len(gpus) * shared.Units()
	}
	n := 0
	for _, g := range gpus {
		n += len(g.Slices)
	}
	return n
}

// migText is MIG of one GPU; which slices it has is known for the node alone.
func migText(g host.GPU, n kube.Node) string {
	switch {
	case g.MIG == "" || strings.Contains(g.MIG, "N/A"):
		return ""
	case g.MIGPending != "" && g.MIGPending != g.MIG:
		return strings.ToLower(g.MIG) + ", " + strings.ToLower(g.MIGPending) + " pending: reboot"
	case g.MIG != "Enabled":
		return "off"
	}
	if len(g.Slices) > 0 {
		return "on: " + countSlices(g.Slices)
	}
	var slices []string
	for label, count := range n.Labels {
		if profile, ok := strings.CutPrefix(label, "nvidia.com/mig-"); ok && strings.HasSuffix(profile, ".count") {
			slices = append(slices, count+" x "+strings.TrimSuffix(profile, ".count"))
		}
	}
	if _, profile, ok := strings.Cut(n.Labels["nvidia.com/gpu.product"], "-MIG-"); ok {
		slices = append(slices, profile)
	}
	if len(slices) == 0 {
		return "on"
	}
	sort.Strings(slices)
	return "on; the node has " + strings.Join(slices, ", ")
}

// countSlices is "1g.10gb x3, 4g.40gb x1".
func countSlices(parts []host.Slice) string {
	counts := map[string]int{}
	for _, p := range parts {
		counts[p.Profile]++
	}
	var out []string
	for profile, n := range counts {
		out = append(out, fmt.Sprintf("%s x%d", profile, n))
	}
	sort.Strings(out)
	return strings.Join(out, ", ")
}

// health is what the machine says of one GPU.
func health(g host.GPU, facts host.Facts) string {
	var wrong []string
	if g.Trouble != "" {
		wrong = append(wrong, g.Trouble)
	}
	if slices.Contains(facts.SMI.Value.Lost, g.PCI) {
		wrong = append(wrong, "lost")
	}
	return join(append(wrong, xidsAt(g.PCI, facts)...))
}

// xidsAt are the errors of one GPU in the kernel's log, those of programs aside.
func xidsAt(pci string, facts host.Facts) []string {
	var out []string
	for code, lines := range nvidia.Xids(facts.KernelLog.Value) {
		if code == nvidia.CodeProgramXid {
			continue
		}
		for _, line := range lines {
			if at, what, ok := strings.Cut(line, ": "); ok && at != "" && strings.HasPrefix(pci, strings.ToLower(at)) {
				out = append(out, what+" ["+string(code)+"]")
			}
		}
	}
	sort.Strings(out)
	return out
}

func join(wrong []string) string {
	if len(wrong) == 0 {
		return "ok"
	}
	return strings.Join(wrong, "; ")
}

// provenAt is when the GPU passed; a node under the taint is unproven.
func provenAt(uuid string, n kube.Node) *time.Time {
	proof, ok := proofOf(n)
	if !ok || !slices.Contains(proof.UUIDs, uuid) || n.HasTaint(smoke.UnprovenTaint) {
		return nil
	}
	return &proof.Time
}
