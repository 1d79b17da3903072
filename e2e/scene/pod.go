package scene

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/e2e/lab/machine"
)

// podLimit bounds a pod that runs to its end.
const podLimit = 2 * time.Minute

// Pod runs a user's pod with GPUs on a node, to its end, and returns its log.
func (s *Scene) Pod(node, image string, gpus int, command string) string {
	s.t.Helper()
	manifest := fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: user, namespace: default}
spec:
  restartPolicy: Never
  nodeSelector: {kubernetes.io/hostname: %s}
  containers:
    - name: main
      image: %s
      command: [sh, -c, %q]
      resources: {limits: {nvidia.com/gpu: %d}}
`, node, image, command, gpus)
	s.Exec(s.server, "k3s kubectl apply -f - <<'EOF'\n"+manifest+"EOF\n")
	var pod struct {
		Status struct {
			Phase             string
			ContainerStatuses []struct {
				State struct {
					Waiting struct{ Reason, Message string }
				}
			}
		}
	}
	s.Until(podLimit, "the user's pod to end", func() string {
		if s.Kubectl(&pod, "get pod user -o json"); pod.Status.Phase == "Succeeded" || pod.Status.Phase == "Failed" {
			return ""
		}
		return fmt.Sprintf("it is %+v", pod.Status)
	})
	log := s.Exec(s.server, "k3s kubectl logs user")
	if pod.Status.Phase != "Succeeded" {
		s.t.Errorf("the user's pod failed:\n%s", log)
	}
	s.Exec(s.server, "k3s kubectl delete pod user --wait --timeout 60s")
	return log
}

// Logins counts the logins by key on a machine so far.
func (s *Scene) Logins(m *machine.Machine) int {
	s.t.Helper()
	out := s.Exec(m, "journalctl -q --no-pager -o cat -t sshd | grep -c '^Accepted publickey' || :")
	n, err := strconv.Atoi(strings.TrimSpace(out))
	if err != nil {
		s.t.Fatalf("counting logins on %s: %v", m.Name, err)
	}
	return n
}
