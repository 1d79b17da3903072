//go:build lab && full

package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/e2e/lab/gpu"
	simulated "github.com/gpuctl/gpuctl/e2e/lab/gpu/scenario"
	"github.com/gpuctl/gpuctl/e2e/lab/machine"
	"github.com/gpuctl/gpuctl/e2e/scene"
)

// brokenAgents are faults of k3s and of the toolkit on the machine with GPUs.
func (c *clinic) brokenAgents() []illness {
	// fails waits until systemd has seen the unit end.
	fails := func() string {
		out := c.s.Exec(c.agent, "systemctl show k3s-agent -p ActiveState,SubState,NRestarts")
		if strings.Contains(out, "NRestarts=0") {
			return out
		}
		return ""
	}
	none := map[string]string{}
	return []illness{
		c.lostToolkit(),
		{
			name:  "the default runtime without its binary",
			agent: "mv " + runtimePath + " " + away + "\necho 'default-runtime: nvidia' >/etc/rancher/k3s/config.yaml\n" + restartAgent, shown: fails,
			undoAgent: "mv " + away + " " + runtimePath + "\nrm /etc/rancher/k3s/config.yaml\n" + settleAgent,
			want:      codes{"default-runtime-missing": "blocks", "toolkit-incomplete": "informs"}, pods: none,
		},
		c.otherPassword(),
		{
			name:  "the token of a server that was rebuilt",
			agent: "f=/etc/rancher/k3s/gpuctl-agent-token\ncp -p $f " + away + "\nsed -i 's/^K10[0-9a-f]\\{8\\}/K1001234567/' $f\n" + restartAgent,
			shown: c.logs("CA hash"), undoAgent: "mv " + away + " /etc/rancher/k3s/gpuctl-agent-token\n" + settleAgent,
			want: codes{"token-ca-mismatch": "blocks"}, pods: none,
		},
		{
			name: "a key that no agent knows", agent: "echo 'no-such-key: 1' >/etc/rancher/k3s/config.yaml\n" + restartAgent, shown: fails,
			undoAgent: "rm /etc/rancher/k3s/config.yaml\n" + settleAgent, want: codes{"k3s-unknown-key": "blocks"}, pods: none, shows: "no-such-key",
		},
		{
			name: "k3s was stopped", agent: "systemctl stop k3s-agent", undoAgent: "systemctl start k3s-agent",
			want: codes{"k3s-stopped": "blocks"}, pods: none, shows: "k3s-agent.service is inactive",
		},
	}
}

// brokenGPU is a GPU that breaks on a living node.
type brokenGPU struct {
	name string
	gpus func(*gpu.Scenario)
	// code is what the doctor calls it, line what the kernel said.
	code, line string
	exit       int
}

func brokenGPUs() []brokenGPU {
	return []brokenGPU{
		{
			name: "a GPU falls off the bus", code: "gpu-lost", line: "NVRM: Xid (PCI:0000:51:00): 79", exit: exitFindings,
			gpus: func(s *gpu.Scenario) {
				s.Faults.Lost = []int{1}
				s.Faults.Xid = []simulated.Xid{{GPU: 1, Code: 79, Text: "GPU has fallen off the bus."}}
			},
		},
		{
			name: "a GPU has memory errors", code: "gpu-ecc-uncorrected", line: "NVRM: Xid (PCI:0000:41:00): 48",
			gpus: func(s *gpu.Scenario) {
				s.Faults.Xid = []simulated.Xid{{GPU: 0, Code: 48, Text: "An uncorrectable double bit error (DBE) has been detected on GPU"}}
			},
		},
		{
			name: "a GPU's own processor hangs", code: "gpu-gsp-timeout", line: "NVRM: Xid (PCI:0000:41:00): 119",
			gpus: func(s *gpu.Scenario) {
				s.Faults.Xid = []simulated.Xid{{GPU: 0, Code: 119, Text: "Timeout after 6s of waiting for RPC response from GPU0 GSP!"}}
			},
		},
	}
}

// cordon: a GPU breaks on a living node while a pod uses one. The doctor names it,
// the node takes no more work and says why, and the provider gets a report.
func (c *clinic) cordon(t *testing.T, b brokenGPU) {
	t.Run(b.name, func(t *testing.T) {
		c.s.Exec(c.server, manifest(gpuHolder)+"k3s kubectl wait pod holder --for condition=Ready --timeout 50s >/dev/null")
		defer c.s.Exec(c.server, "k3s kubectl delete pod holder --wait --timeout 50s >/dev/null")
		uuids := strings.Fields(c.s.Exec(c.agent, "nvidia-smi --query-gpu=uuid --format=csv,noheader"))
		sick := gpu.H100(2)
		b.gpus(&sick)
		ail(t, c.s, c.agent, sick)
		defer ail(t, c.s, c.agent, gpu.H100(2))

		file := filepath.Join(t.TempDir(), "provider.txt")
		var got examined
		c.s.Decode(c.s.Must(b.exit, "doctor", "--no-pairs", "-o", "json", "--cordon", "--report", file), &got)
		var of []string
		for _, f := range got.Findings {
			if c.healthy[f.Machine+" "+f.Code] != f.Severity {
				of = append(of, f.Machine+":"+f.Code)
			}
		}
		if want := c.agent.Name + ":" + b.code; len(of) != 1 || of[0] != want {
			t.Errorf("found %v, want %s: %+v", of, want, got.Findings)
		}
		if len(got.Pods) != 1 || got.Pods[0].Pod != "default/holder" || got.Pods[0].Code != b.code {
			t.Errorf("the pod that may have the GPU: %+v", got.Pods)
		}
		n := c.s.Nodes()[c.agent.Name]
		if !n.Spec.Unschedulable || len(got.Cordoned) != 1 || got.Cordoned[0] != c.agent.Name {
			t.Errorf("cordoned %v, the node %v", got.Cordoned, n.Spec)
		}
		var evidence struct {
			Time     string
			Findings []finding
			Log      []string
		}
		if err := json.Unmarshal([]byte(n.Metadata.Annotations["gpuctl.dev/gpu-fault"]), &evidence); err != nil || len(evidence.Findings) != 1 || len(evidence.Log) != 1 {
			t.Errorf("the evidence on the node: %v %+v", err, evidence)
		}
		report, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		mentions(t, "the report", string(report), append(uuids[:1], c.agent.Name, b.line, "driver 580.")...)
		c.s.Must(0, "node", "uncordon", c.agent.Name)
	})
}

// gpuHolder is a user's pod that has a GPU and keeps it.
const gpuHolder = `
apiVersion: v1
kind: Pod
metadata: {name: holder, namespace: default}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: main, image: "docker.io/library/busybox:1.36.1", command: [sleep, "3600"], resources: {limits: {nvidia.com/gpu: 1}}}]
`

// ail lays faults of a node that lives: its containers keep their devices.
func ail(t testing.TB, s *scene.Scene, m *machine.Machine, g gpu.Scenario) {
	t.Helper()
	layWith(t, s, m, g, " faults")
}
