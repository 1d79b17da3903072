//go:build lab

package e2e_test

import (
	"fmt"
	"strings"
	"testing"
)

// What the scripts of broken agents share.
const (
	runtimePath  = "/usr/bin/nvidia-container-runtime"
	away         = "/root/away"
	restartAgent = "systemctl restart --no-block k3s-agent\n"
	settleAgent  = "systemctl reset-failed k3s-agent 2>/dev/null || :\nsystemctl restart k3s-agent\n"
)

// rounds are those of a cluster that another test has made: what costs least of
// what TestFullWhatIsWrongInACluster provokes.
func (c *clinic) rounds(t *testing.T) {
	t.Helper()
	c.treat(t, c.pendingPods())
	c.treat(t, c.closed("an unproven node", unproven, "pod-node-unproven"))
	c.treat(t, c.lostToolkit())
	c.treat(t, c.otherPassword())
}

func (c *clinic) lostToolkit() illness {
	return illness{
		name: "the toolkit is removed under a running node", agent: "mv " + runtimePath + " " + away, undoAgent: "mv " + away + " " + runtimePath,
		want: codes{"runtime-binary-missing": "warns", "toolkit-incomplete": "informs"}, pods: map[string]string{}, shows: runtimePath,
	}
}

func (c *clinic) otherPassword() illness {
	return illness{
		name: "the node's password is another one", agent: "cp /etc/rancher/node/password " + away + "\necho 0123456789abcdef0123456789abcdef >/etc/rancher/node/password\n" + restartAgent,
		shown:     c.logs("assword rejected"),
		undoAgent: "mv " + away + " /etc/rancher/node/password\n" + settleAgent, want: codes{"node-password-rejected": "blocks"}, pods: map[string]string{},
	}
}

// logs waits for words in the agent's log.
func (c *clinic) logs(fragment string) func() string {
	return func() string {
		if out := c.s.Exec(c.agent, "journalctl -q --no-pager -o cat -u k3s-agent -n 30 | cut -c1-300"); !strings.Contains(out, fragment) {
			return out
		}
		return ""
	}
}

// one waits for a GPU that is free.
const one = `
apiVersion: v1
kind: Pod
metadata: {name: one, namespace: default}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: main, image: "docker.io/library/busybox:1.36.1", command: [sleep, "3600"], resources: {limits: {nvidia.com/gpu: 1}}}]
`

const oneGone = "k3s kubectl delete pod one --wait --timeout 50s >/dev/null\n"

// oneWaits: the scheduler has found no place for it.
func (c *clinic) oneWaits() string {
	out := c.s.Exec(c.server, `k3s kubectl get pod one -o jsonpath='{.status.conditions[?(@.type=="PodScheduled")].reason}'`)
	if out != "Unschedulable" {
		return "the pod is " + out
	}
	return ""
}

// closed: the GPUs are free and a taint keeps pods from them.
func (c *clinic) closed(name, key, code string) illness {
	node := c.agent.Name
	return illness{
		name: name, server: fmt.Sprintf("k3s kubectl taint node %s %s:NoSchedule >/dev/null\n", node, key) + manifest(one),
		undoServer: oneGone + fmt.Sprintf("k3s kubectl taint node %s %s:NoSchedule- >/dev/null", node, key), shown: c.oneWaits,
		want: codes{code: "warns"}, pods: map[string]string{"default/one": code}, shows: node,
	}
}
