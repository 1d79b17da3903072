package bootstrap

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/internal/kube"
)

func renderGPUs(r GPUsResult) string {
	var out strings.Builder
	for _, g := range r.GPUs {
		fmt.Fprintf(&out, "%s/%d %s|%d|%s|%s|mig %s|%s %s|users %v %v|%s|proven %v\n", g.Node, g.Index, g.Model, g.MemoryMiB, g.Driver, g.CUDA, g.MIG,
			g.Sharing, g.Resource, g.Users, g.UsersSure, g.Health, g.ProvenAt != nil)
	}
	for _, m := range r.Missing {
		fmt.Fprintln(&out, "missing:", m)
	}
	return out.String()
}

func TestGPUsOfBothHalves(t *testing.T) {
	w := clusterOf(t, "server-1", "gpu-1")
	whole := settledSight(t, w, 1, 2)
	asNode(&whole.cluster.state.Nodes[1], 8, "gpuctl-time-slicing-4")
	whole.cluster.state.Nodes[1].Labels["nvidia.com/cuda.runtime-version.full"] = "13.0"
	whole.cluster.state.Nodes[1].Labels["nvidia.com/gpu.count"] = "2"
	whole.cluster.state.Nodes[1].Labels["nvidia.com/gpu.product"] = "NVIDIA-H100-PCIe-SHARED"
	whole.cluster.state.Nodes[0].Labels = map[string]string{"nvidia.com/gpu.replicas": "1"}
	pod := func(name, node string, n int64) kube.Pod {
		return kube.Pod{Namespace: "team", Name: name, Node: node, GPUs: map[string]int64{"nvidia.com/gpu": n}}
	}
	whole.cluster.state.Pods = []kube.Pod{pod("a", "gpu-1", 1), pod("b", "gpu-1", 1), pod("c", "server-1", 1)}

	noAgent := whole
	noAgent.facts = map[string]host.Facts{"server-1": whole.facts["server-1"]}
	noAgent.unreached = map[string]error{"gpu-1": errors.New("refused")}
	noAPI := whole
	noAPI.cluster = clusterSight{state: kube.State{NoAPI: "connection refused"}}

	ill := settledSight(t, w, 1, 2)
	f := ill.facts["gpu-1"]
	smi := f.SMI.Value
	smi.GPUs = smi.GPUs[:1]
	smi.GPUs[0].Trouble, smi.GPUs[0].MIGPending = "GPU requires reset", "Enabled"
	smi.Lost = []string{"0000:19:00.0"}
	f.SMI, f.KernelLog = host.Known(smi), host.Known([]host.KernelMsg{{PCI: "0000:19:00", Xid: 79}})
	ill.facts["gpu-1"] = f

	cut := settledSight(t, w, 1, 2)
	cutNode(&cut.cluster.state.Nodes[1], "all-3g.40gb", "NVIDIA-H100-PCIe-MIG-3g.40gb", map[string]int64{"nvidia.com/gpu": 2})
	cut.cluster.state.Pods = []kube.Pod{pod("a", "gpu-1", 1), pod("b", "gpu-1", 1)}
	f = cut.facts["gpu-1"]
	f.SMI.Value.GPUs[0].MIG, f.SMI.Value.GPUs[0].MIGPending = "Enabled", "Enabled"
	f.SMI.Value.GPUs[0].Slices = []host.Slice{{UUID: "MIG-a", Profile: "3g.40gb"}, {UUID: "MIG-b", Profile: "3g.40gb"}}
	cut.facts["gpu-1"] = f

	out := "# both halves\n" + renderGPUs(w.gpuInfos(whole)) + "# one machine does not answer\n" + renderGPUs(w.gpuInfos(noAgent)) +
		"# no API\n" + renderGPUs(w.gpuInfos(noAPI)) + "# ill\n" + renderGPUs(w.gpuInfos(ill)) + "# cut into slices\n" + renderGPUs(w.gpuInfos(cut))
	golden(t, "gpus", out)
}

// The lines are in the form of NVIDIA/dcgm-exporter's README; values are synthetic.
const exported = `# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-2-0",pci_bus_id="00000000:18:00.0",device="nvidia0",modelName="NVIDIA H100 PCIe",Hostname="gpu-1",container="main",namespace="team",pod="train-0"} 97
DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-2-1",modelName="NVIDIA \\"H100\\"",Hostname="gpu-1",container="",namespace="",pod=""} 0
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-2-0"} 4011
DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="0",UUID="GPU-2-9",GPU_I_PROFILE="1g.10gb",GPU_I_ID="7",pod="a",namespace="team"} 0.250000
DCGM_FI_DEV_GPU_UTIL{gpu="7",UUID="GPU-2-7"} 18446744073709551610
DCGM_FI_DEV_GPU_UTIL{gpu="8"} 3
`

func TestWhatDCGMTells(t *testing.T) {
	got := parseDCGM(exported)
	want := map[string]load{"GPU-2-0": {97, []string{"team/train-0"}}, "GPU-2-1": {0, nil}, "GPU-2-9": {-1, []string{"team/a"}}, "GPU-2-7": {-1, nil}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	r := GPUsResult{GPUs: []GPUInfo{{UUID: "GPU-2-0", Users: []string{"team/train-0", "team/other"}}, {UUID: "GPU-2-1", Users: []string{"team/other"}}, {}}}
	r.loaded(got)
	if u := r.GPUs[0]; *u.Utilisation != 97 || !u.UsersSure || len(u.Users) != 1 {
		t.Errorf("%+v", u)
	}
	if u := r.GPUs[1]; *u.Utilisation != 0 || u.UsersSure || r.GPUs[2].Utilisation != nil {
		t.Errorf("%+v", r.GPUs)
	}
}

func FuzzParseDCGM(f *testing.F) {
	f.Add(exported)
	f.Fuzz(func(t *testing.T, text string) {
		for uuid, of := range parseDCGM(text) {
			if !strings.HasPrefix(uuid, "GPU-") || of.percent < -1 || of.percent > 100 {
				t.Errorf("%q: %s is %+v", text, uuid, of)
			}
		}
	})
}
