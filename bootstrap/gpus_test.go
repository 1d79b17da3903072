package bootstrap

import (
	"errors"
	"fmt"
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

	out := "# both halves\n" + renderGPUs(w.gpuInfos(whole)) + "# one machine does not answer\n" + renderGPUs(w.gpuInfos(noAgent)) +
		"# no API\n" + renderGPUs(w.gpuInfos(noAPI)) + "# ill\n" + renderGPUs(w.gpuInfos(ill))
	golden(t, "gpus", out)
}
