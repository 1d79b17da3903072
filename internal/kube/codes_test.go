package kube

import (
	"testing"

	"github.com/gpuctl/gpuctl/internal/diag"
)

func TestWaitsEndWithAnEntry(t *testing.T) {
	for reason, code := range map[string]diag.Code{
		"node gpu-1 has not registered yet":                             "node-not-registered",
		"node gpu-1 is not Ready: KubeletNotReady: cni plugin":          "node-not-ready",
		"node gpu-1 offers 0 of 2 nvidia.com/gpu":                       "smoke-nothing-allocatable",
		`FailedCreatePodSandBox: no runtime for "nvidia" is configured`: "runtime-not-configured",
		"nothing was seen yet":                                          "wait-ended",
	} {
		if got := (&WaitError{Reason: reason}).DiagCode(); got != code {
			t.Errorf("%s: %s, want %s", reason, got, code)
		}
	}
	if (&DrainError{}).DiagCode() != "drain-blocked" || (&QuorumError{}).DiagCode() != "etcd-quorum" || (&TakenError{}).DiagCode() != "kubeconfig-name-taken" {
		t.Error("drain, quorum or kubeconfig")
	}
	for _, code := range Codes() {
		if _, ok := diag.Lookup(code); !ok {
			t.Errorf("%s is not in the catalogue", code)
		}
	}
}
