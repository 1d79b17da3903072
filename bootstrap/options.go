package bootstrap

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/smoke"
)

// ApplyOptions say how far Apply may go.
type ApplyOptions struct {
	// Confirm sees the first plan before anything changes. Returning nil agrees to
	// every consent that stands in this plan and to none that appears later. A nil
	// Confirm agrees to the first plan as it is.
	Confirm func(context.Context, PlanResult) error
	// SkipSmoke leaves new nodes unproven.
	SkipSmoke bool
	// SharingOnly changes how GPUs are shared and nothing else that is pending.
	SharingOnly bool
	// NoPairs joins machines without probing the ways between them first.
	NoPairs bool
}

// SmokeOptions choose what is proven.
type SmokeOptions struct {
	// Nodes are names; none means every node with GPUs.
	Nodes []string
}

// ResetOptions choose what is taken apart.
type ResetOptions struct {
	// Nodes are names; none means the whole cluster.
	Nodes []string
	// Driver also removes the NVIDIA driver, where gpuctl installed it.
	Driver bool
	// Confirm as in ApplyOptions.
	Confirm func(context.Context, PlanResult) error
}

// Stdio are the streams of an interactive command. Terminal asks for a terminal
// on the machine.
type Stdio struct {
	In       io.Reader
	Out, Err io.Writer
	Terminal bool
}

// SmokeResult is what proving the GPUs brought.
type SmokeResult struct {
	Cluster string      `json:"cluster"`
	Passed  bool        `json:"passed"`
	Nodes   []SmokeNode `json:"nodes"`
	// Seconds is wall time.
	Seconds float64 `json:"seconds"`
	// Reports are the tests as they were made, for smoke.JUnit.
	Reports []smoke.Report `json:"-"`
}

// SmokeNode is one node's proof.
type SmokeNode struct {
	Node string `json:"node"`
	// Status is passed, failed or in-use (GPUs that other pods hold were not tested).
	Status string `json:"status"`
	// GPUs counts the GPUs tested; UUIDs are what the pods were given.
	GPUs  int         `json:"gpus"`
	UUIDs []string    `json:"uuids,omitempty"`
	Steps []SmokeStep `json:"steps"`
	// Code is an entry of the failure catalogue, if one explains the failure.
	Code string `json:"code,omitempty"`
}

// SmokeStep is one rung of the acceptance ladder on one node.
type SmokeStep struct {
	Name    string  `json:"name"`
	Status  string  `json:"status"` // passed, failed, in-use, skipped
	Detail  string  `json:"detail,omitempty"`
	Seconds float64 `json:"seconds"`
}

// BlockedError says that findings stop the run (exit code 3).
type BlockedError struct {
	Findings []diag.Finding
}

func (e *BlockedError) Error() string {
	var codes []string
	for _, f := range e.Findings {
		where := f.Machine
		if where == "" {
			where = "cluster"
		}
		codes = append(codes, where+": "+string(f.Code))
	}
	return fmt.Sprintf("stopped by %d findings: %s", len(e.Findings), strings.Join(codes, ", "))
}

// DiagCode is the first finding's: an action after which its machine turned out
// to be blocked ends with the entry of what blocks it.
func (e *BlockedError) DiagCode() diag.Code {
	if len(e.Findings) == 0 {
		return ""
	}
	return e.Findings[0].Code
}

// SmokeError says that nodes did not prove their GPUs (exit code 6).
type SmokeError struct {
	Nodes []string
}

func (e *SmokeError) Error() string {
	return "smoke test failed on " + strings.Join(e.Nodes, ", ")
}
