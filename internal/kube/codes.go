package kube

import (
	"strings"

	"github.com/gpuctl/gpuctl/internal/diag"
)

// DiagCode is the entry of the catalogue that the last reason speaks of, else
// that of a wait as such.
func (e *WaitError) DiagCode() diag.Code {
	switch {
	case strings.Contains(e.Reason, "has not registered yet"):
		return "node-not-registered"
	case strings.Contains(e.Reason, " is not Ready: "):
		return "node-not-ready"
	case strings.Contains(e.Reason, " offers "):
		return "smoke-nothing-allocatable"
	}
	if found := diag.ExplainText(e.Reason); len(found) > 0 {
		return found[0].Code
	}
	return "wait-ended"
}

// DiagCode names the entry of the catalogue.
func (e *DrainError) DiagCode() diag.Code { return "drain-blocked" }

// DiagCode names the entry of the catalogue.
func (e *QuorumError) DiagCode() diag.Code { return "etcd-quorum" }

// DiagCode names the entry of the catalogue.
func (e *TakenError) DiagCode() diag.Code { return "kubeconfig-name-taken" }

// Codes returns every code that errors of this package carry, beside those that
// diag.ExplainText finds.
func Codes() []diag.Code {
	return []diag.Code{
		"node-not-registered", "node-not-ready", "smoke-nothing-allocatable", "wait-ended", "drain-blocked", "etcd-quorum", "kubeconfig-name-taken",
	}
}
