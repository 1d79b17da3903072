package doctor

import "github.com/gpuctl/gpuctl/internal/diag"

// Codes returns every code this package raises by itself; texts of events and
// containers lead to others through diag.ExplainText.
func Codes() []diag.Code {
	return []diag.Code{
		// nodes
		"node-not-ready", "node-not-registered", "node-pressure", "node-cordoned", "kubelet-version-skew", "gpu-unhealthy", "mig-empty",
		"smoke-nothing-allocatable", "nfd-labels-missing", "mig-config-failed", "driver-upgrade-stuck", "operator-driver-paused",
		"overlay-wrong-interface",
		// operator
		"operators-two", "operator-missing", "operator-deployment-down", "operator-not-ready", "operator-policy-error", "nfd-twice",
		"nfd-labels-vanish", "rdma-devices-all", "toolkit-containerd-dump", "toolkit-imports-replaced", "containerd-template-by-toolkit", "toolkit-other-containerd", "toolkit-writes-nowhere",
		// operands
		"operator-out-of-memory", "driver-image-missing", "operand-waits", "peermem-restart", "device-plugin-failing", "dcgm-unreachable",
		"plugin-config-missing", "runtime-not-configured", "smoke-image-pull",
		// pods
		"smoke-shared-request", "admission-after-restart", "smoke-admission-refused", "user-namespace-pod", "pods-fail-on-restart",
		"gpu-visible-without-request", "pods-stuck-terminating", "gang-half-placed", "pod-quota", "pod-security", "pod-runtime-class",
		"pod-volume", "pod-no-free-gpu", "pod-resource-renamed", "pod-node-unproven", "pod-untolerated-taint", "pod-node-selector",
		"image-needs-newer-driver", "image-drops-gpu", "image-older-than-gpu",
		"sharing-refused", "sharing-dead-keys",
		// by the words of events and containers
		"smoke-image-too-new", "smoke-image-too-old", "cuda-insufficient", "nvml-lost", "nvml-permissions", "toolkit-timeout",
		"driver-version-mismatch", "pull-rate-limit", "driver-device-major", "driver-modules-incomplete", "mps-too-many",
		"gpu-lost-blocks-all", "fabric-manager-down", "mount-not-shared",
	}
}
