//go:build lab

package e2e_test

import (
	"strings"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/e2e/lab/machine"
	"github.com/gpuctl/gpuctl/e2e/scene"
)

// TestSpotMachineAndColleague: a second computer takes the cluster over by
// trusting its server alone, and machines of another cluster are refused. Then the
// watcher of a spot machine hears of its end from the metadata service and, with
// no more than the kubelet's rights, keeps new pods away and evicts its own.
func TestSpotMachineAndColleague(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "spot")
	m := s.Machines(machine.Spec{Name: "server"}, machine.Spec{Name: "one"})
	server, one := m[0], m[1]
	aws := newMetadata(t, s, one)
	cluster := scene.Cluster{
		Members: []scene.Member{{Machine: server}, {Machine: one, More: map[string]any{"group": "cheap"}}},
		Spec:    map[string]any{"provider": "aws", "groups": []map[string]any{{"name": "cheap", "spot": true, "hourly": 1.5}}},
	}
	s.Write(cluster)
	s.Must(0, "apply")
	nothingChanges(t, s, s.EndState())
	if out, err := s.TryExec(server, "systemctl is-active gpuctl-spot"); err == nil {
		t.Errorf("a machine that is not spot watches, too: %s", out)
	}

	colleague(t, s, cluster)
	neverMix(t, s, one)
	spotNotice(t, s, server, one, aws)

	cluster.Spec["groups"] = []map[string]any{{"name": "cheap", "hourly": 1.5}}
	s.Write(cluster)
	s.Must(0, "apply")
	if out, err := s.TryExec(one, "systemctl cat gpuctl-spot || ls /usr/local/lib/gpuctl"); err == nil {
		t.Errorf("the watcher is still there: %s", out)
	}
}

// spotNotice gives notice twice, by the metadata service and by a signal, and takes it back.
func spotNotice(t *testing.T, s *scene.Scene, server, one *machine.Machine, aws *metadata) {
	t.Helper()
	s.Exec(server, deployment("moves", one.Name)+deployment("guarded", one.Name)+"k3s kubectl create pdb guarded --selector app=guarded --min-available 1\n")
	moves, guarded := running(s, server, "moves"), running(s, server, "guarded")
	s.Until(time.Minute, "the metadata service to be asked", func() string {
		if aws.asked.Load() == 0 {
			return "nobody has asked"
		}
		return ""
	})
	if cordoned(s, one.Name) {
		t.Fatal("the node is cordoned without a notice")
	}

	aws.leaving.Store(true)
	noticed(t, s, server, one, moves)
	if now := running(s, server, "guarded"); now != guarded {
		t.Errorf("the pod of a disruption budget went: %s, was %s", now, guarded)
	}
	s.Exec(server, "k3s kubectl delete pdb guarded")
	gone(s, server, "guarded", guarded)
	kubeletAlone(t, s, one)
	var got status
	if s.Decode(s.Must(0, "status", "-o", "json"), &got); !strings.Contains(s.Must(0, "status").Stdout, "node-spot-notice") {
		t.Errorf("status says nothing of the notice: %+v", got)
	}

	aws.leaving.Store(false)
	opened(s, one)
	moves = running(s, server, "moves")
	s.Exec(one, "systemctl kill -s USR1 gpuctl-spot")
	noticed(t, s, server, one, moves)
	s.Exec(one, "rm /run/gpuctl-spot/notice")
	opened(s, one)
}

// noticed waits until the node says that it leaves and a pod of it has gone.
func noticed(t *testing.T, s *scene.Scene, server, one *machine.Machine, pod string) {
	t.Helper()
	start := time.Now()
	s.Until(time.Minute, "the node to say that it leaves", func() string {
		if out := spotMark(s, one); out == "" || !cordoned(s, one.Name) {
			return "its mark is " + out
		}
		return ""
	})
	gone(s, server, "moves", pod)
	t.Logf("marked, cordoned and emptied %s after the notice", time.Since(start).Round(100*time.Millisecond))
}

// opened waits until the notice is taken back.
func opened(s *scene.Scene, one *machine.Machine) {
	s.Until(time.Minute, "the node to be open again", func() string {
		if out := spotMark(s, one); out != "" || cordoned(s, one.Name) {
			return "its mark is " + out
		}
		return ""
	})
}

func spotMark(s *scene.Scene, one *machine.Machine) string {
	var n struct {
		Metadata struct{ Annotations map[string]string }
	}
	s.Kubectl(&n, "get node "+one.Name+" -o json")
	return n.Metadata.Annotations["gpuctl.dev/spot-notice"]
}

// gone waits until the pod of a deployment is another one than it was, or none that runs.
func gone(s *scene.Scene, server *machine.Machine, app, was string) {
	uid, _, _ := strings.Cut(was, " ")
	s.Until(time.Minute, "the pod of "+app+" to go", func() string {
		if out := s.Exec(server, `k3s kubectl get pods -l app=`+app+` -o jsonpath='{.items[*].metadata.uid}'`); strings.Contains(out, uid) {
			return "it is still there: " + out
		}
		return ""
	})
}

// kubeletAlone holds what the watcher's identity may do against what it must not.
func kubeletAlone(t *testing.T, s *scene.Scene, one *machine.Machine) {
	t.Helper()
	kubectl := "k3s kubectl --kubeconfig /var/lib/rancher/k3s/agent/kubelet.kubeconfig "
	for _, refused := range []string{"taint node " + one.Name + " a=b:NoSchedule", "delete node " + s.Name + "-server --wait=false --request-timeout 20s", "cordon " + s.Name + "-server", "get secrets -A"} {
		if out, err := s.TryExec(one, kubectl+refused+" 2>&1"); err == nil || !strings.Contains(out, "forbidden") && !strings.Contains(out, "Forbidden") {
			t.Errorf("kubectl %s as the kubelet: %v, %s", refused, err, out)
		}
	}
	if out, err := s.TryExec(one, "ls /etc/rancher/k3s/k3s.yaml"); err == nil {
		t.Errorf("an administrator's kubeconfig is on the agent: %s", out)
	}
}
