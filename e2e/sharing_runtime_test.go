//go:build lab

package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/e2e/lab/machine"
	"github.com/gpuctl/gpuctl/e2e/scene"
)

// probePod is a user's pod.
const probePod = `
apiVersion: v1
kind: Pod
metadata: {name: probe, namespace: default}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 0
%s
  containers:
    - name: main
      image: docker.io/library/busybox:1.36.1
      command: [sh, -c, "ls /dev/nvidia[0-9]* && nvidia-smi -L"]
      %s
`

// getsItsGPU runs a pod of the very lines that status tells users to write: it is
// given one GPU, and the device plugin may just be coming back.
func getsItsGPU(t *testing.T, s *scene.Scene, m *machine.Machine, path string) {
	t.Helper()
	var status struct {
		RuntimePath string
		PodLines    []string
	}
	s.Decode(s.Must(0, "status", "-o", "json"), &status)
	if status.RuntimePath != path || len(status.PodLines) == 0 {
		t.Fatalf("status: %+v, want the path %s", status, path)
	}
	resources, rest := "", ""
	for _, line := range status.PodLines {
		if strings.HasPrefix(line, "resources:") {
			resources = line
		} else {
			rest += "  " + line + "\n"
		}
	}
	manifest := fmt.Sprintf(probePod, rest, resources)
	log := ""
	s.Until(3*time.Minute, "a pod by the lines of status to see its GPU", func() string {
		out, err := s.TryExec(m, "k3s kubectl delete pod probe --ignore-not-found --wait --timeout 30s >/dev/null && k3s kubectl apply -f - >/dev/null <<'EOF' &&\n"+
			manifest+"EOF\nk3s kubectl wait pod probe --for=jsonpath='{.status.phase}'=Succeeded --timeout 20s >/dev/null && k3s kubectl logs probe")
		if err != nil {
			return err.Error() + ": " + out
		}
		log = out
		return ""
	})
	if n := strings.Count(log, "/dev/nvidia"); n != 1 || strings.Count(log, "UUID: GPU-") != 1 {
		t.Errorf("the pod asked for one GPU and sees\n%s", log)
	}
	s.Exec(m, "k3s kubectl delete pod probe --wait --timeout 30s")
}
