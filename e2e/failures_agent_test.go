//go:build lab && full

package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// brokenAgents are faults of k3s and of the toolkit on the machine with GPUs.
func (c *clinic) brokenAgents() []illness {
	const (
		runtime = "/usr/bin/nvidia-container-runtime"
		away    = "/root/away"
		restart = "systemctl restart --no-block k3s-agent\n"
		settle  = "systemctl reset-failed k3s-agent 2>/dev/null || :\nsystemctl restart k3s-agent\n"
	)
	// fails waits until systemd has seen the unit end.
	fails := func() string {
		out := c.s.Exec(c.agent, "systemctl show k3s-agent -p ActiveState,SubState,NRestarts")
		if strings.Contains(out, "NRestarts=0") {
			return out
		}
		return ""
	}
	logs := func(fragment string) func() string {
		return func() string {
			if out := c.s.Exec(c.agent, "journalctl -q --no-pager -o cat -u k3s-agent -n 30 | cut -c1-300"); !strings.Contains(out, fragment) {
				return out
			}
			return ""
		}
	}
	none := map[string]string{}
	return []illness{
		{
			name: "the toolkit is removed under a running node", agent: "mv " + runtime + " " + away, undoAgent: "mv " + away + " " + runtime,
			want: codes{"runtime-binary-missing": "warns", "toolkit-incomplete": "informs"}, pods: none, shows: runtime,
		},
		{
			name:  "the default runtime without its binary",
			agent: "mv " + runtime + " " + away + "\necho 'default-runtime: nvidia' >/etc/rancher/k3s/config.yaml\n" + restart, shown: fails,
			undoAgent: "mv " + away + " " + runtime + "\nrm /etc/rancher/k3s/config.yaml\n" + settle,
			want:      codes{"default-runtime-missing": "blocks", "toolkit-incomplete": "informs"}, pods: none,
		},
		{
			name: "the node's password is another one", agent: "cp /etc/rancher/node/password " + away + "\necho 0123456789abcdef0123456789abcdef >/etc/rancher/node/password\n" + restart,
			shown:     logs("assword rejected"),
			undoAgent: "mv " + away + " /etc/rancher/node/password\n" + settle, want: codes{"node-password-rejected": "blocks"}, pods: none,
		},
		{
			name:  "the token of a server that was rebuilt",
			agent: "f=/etc/rancher/k3s/gpuctl-agent-token\ncp -p $f " + away + "\nsed -i 's/^K10[0-9a-f]\\{8\\}/K1001234567/' $f\n" + restart,
			shown: logs("CA hash"), undoAgent: "mv " + away + " /etc/rancher/k3s/gpuctl-agent-token\n" + settle,
			want: codes{"token-ca-mismatch": "blocks"}, pods: none,
		},
		{
			name: "a key that no agent knows", agent: "echo 'no-such-key: 1' >/etc/rancher/k3s/config.yaml\n" + restart, shown: fails,
			undoAgent: "rm /etc/rancher/k3s/config.yaml\n" + settle, want: codes{"k3s-unknown-key": "blocks"}, pods: none, shows: "no-such-key",
		},
		{
			name: "k3s was stopped", agent: "systemctl stop k3s-agent", undoAgent: "systemctl start k3s-agent",
			want: codes{"k3s-stopped": "blocks"}, pods: none, shows: "k3s-agent.service is inactive",
		},
	}
}

// cordon: a GPU with memory errors; its node takes no more work, says why, and
// the provider gets a report.
func (c *clinic) cordon(t *testing.T) {
	t.Run("a broken GPU is kept from pods", func(t *testing.T) {
		c.s.Exec(c.agent, "set -e\n"+program("/usr/local/bin/dmesg", `echo "[   12.000001] NVRM: Xid (PCI:0000:41:00): 48, pid=4711, name=python, An uncorrectable double bit error (DBE) has been detected on GPU"`))
		defer c.s.Exec(c.agent, "rm /usr/local/bin/dmesg")
		file := filepath.Join(c.s.Dir, "provider.txt")
		got := c.doctor(t, "--cordon", "--report", file)
		var of []string
		for _, f := range got.Findings {
			if f.Severity != "informs" {
				of = append(of, f.Machine+":"+f.Code)
			}
		}
		if want := c.agent.Name + ":gpu-ecc-uncorrected"; len(of) != 1 || of[0] != want {
			t.Errorf("found %v, want %s", of, want)
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
		uuids := strings.Fields(c.s.Exec(c.agent, "nvidia-smi --query-gpu=uuid,serial --format=csv,noheader | tr -d ,"))
		mentions(t, "the report", string(report), append(uuids, c.agent.Name, "NVRM: Xid (PCI:0000:41:00): 48", "driver 580.", "T")...)
		c.s.Must(0, "node", "uncordon", c.agent.Name)
	})
}
