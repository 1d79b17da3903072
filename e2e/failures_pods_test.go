//go:build lab

package e2e_test

import "strings"

// waitingPods wait for GPUs, each for another reason, or have lost theirs. %s is
// the node with the GPUs.
const waitingPods = `
apiVersion: v1
kind: Namespace
metadata: {name: team}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: gpus, namespace: team}
spec: {hard: {requests.nvidia.com/gpu: "0"}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: team}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: "docker.io/library/busybox:1.36.1", resources: {limits: {nvidia.com/gpu: 1}}}]}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: default}
spec: {accessModes: [ReadWriteOnce], storageClassName: none-of-that-name, resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: volume, namespace: default}
spec:
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
  containers: [{name: main, image: "docker.io/library/busybox:1.36.1", resources: {limits: {nvidia.com/gpu: 1}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: three, namespace: default}
spec: {containers: [{name: main, image: "docker.io/library/busybox:1.36.1", resources: {limits: {nvidia.com/gpu: 3}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: profile, namespace: default}
spec: {containers: [{name: main, image: "docker.io/library/busybox:1.36.1", resources: {limits: {nvidia.com/mig-1g.10gb: 1}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: shared, namespace: default}
spec: {containers: [{name: main, image: "docker.io/library/busybox:1.36.1", resources: {limits: {nvidia.com/gpu.shared: 1}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: model, namespace: default}
spec:
  nodeSelector: {nvidia.com/gpu.product: NVIDIA-L40S}
  containers: [{name: main, image: "docker.io/library/busybox:1.36.1", resources: {limits: {nvidia.com/gpu: 1}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: image, namespace: default}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: main, image: "docker.io/library/no-such-image:1", resources: {limits: {nvidia.com/gpu: 1}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: lost, namespace: default}
spec:
  terminationGracePeriodSeconds: 0
  containers:
    - name: main
      image: "docker.io/library/busybox:1.36.1"
      command: [sh, -c, "echo step 1; echo 'Failed to initialize NVML: Unknown Error'; sleep 3600"]
      resources: {limits: {nvidia.com/gpu: 1}}
`

// oldDriver ends with what a CUDA program says where the driver is too old for it.
const oldDriver = `
apiVersion: v1
kind: Pod
metadata: {name: cuda, namespace: default}
spec:
  restartPolicy: Never
  containers:
    - name: main
      image: "docker.io/library/busybox:1.36.1"
      command: [sh, -c, "echo 'CUDA driver version is insufficient for CUDA runtime version'; exit 1"]
      resources: {limits: {nvidia.com/gpu: 1}}
`

func manifest(text string) string { return "k3s kubectl apply -f - <<'EOF'\n" + text + "EOF\n" }

// pendingPods are all at once: they do not disturb each other.
func (c *clinic) pendingPods() illness {
	return illness{
		name: "pods that wait", modelled: "programs say themselves that NVML is lost, or the driver too old",
		server: manifest(oldDriver) + "k3s kubectl wait pod cuda --for jsonpath='{.status.phase}'=Failed --timeout 50s >/dev/null\n" + manifest(waitingPods),
		undoServer: `k3s kubectl delete pods --all --wait --timeout 50s >/dev/null
k3s kubectl delete pvc data >/dev/null
k3s kubectl delete namespace team --wait --timeout 50s >/dev/null`,
		shown: func() string {
			pods := c.s.Exec(c.server, `k3s kubectl get pods -o jsonpath='{range .items[*]}{.metadata.name}={.status.phase}/{.status.containerStatuses[0].state.waiting.reason}/{.status.conditions[?(@.type=="PodScheduled")].reason} {end}'`)
			job := c.s.Exec(c.server, `k3s kubectl -n team get events -o jsonpath='{.items[*].reason}'`)
			for _, part := range []string{
				"lost=Running", "image=Pending/ImagePull", "volume=Pending//Unsch", "three=Pending//Unsch", "profile=Pending//Unsch", "shared=Pending//Unsch", "model=Pending//Unsch",
			} {
				if !strings.Contains(pods, part) {
					return pods
				}
			}
			if !strings.Contains(job, "FailedCreate") {
				return "events of the job: " + job
			}
			return ""
		},
		want: codes{
			"pod-no-free-gpu": "warns", "pod-resource-renamed": "warns", "pod-node-selector": "warns", "pod-volume": "warns", "pod-quota": "warns",
			"smoke-image-pull": "blocks", "cuda-insufficient": "blocks", "nvml-lost": "warns",
		},
		pods: map[string]string{
			"default/three": "pod-no-free-gpu", "default/profile": "pod-resource-renamed", "default/shared": "pod-resource-renamed",
			"default/model": "pod-node-selector", "default/volume": "pod-volume", "default/image": "smoke-image-pull",
			"default/cuda": "cuda-insufficient", "default/lost": "nvml-lost",
		},
		shows: "no single node has more than 2",
	}
}
