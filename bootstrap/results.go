package bootstrap

import (
	"time"

	"github.com/gpuctl/gpuctl/internal/diag"
)

// MachineState is where one machine of the inventory stands.
type MachineState string

const (
	// Reached: connected and probed.
	Reached MachineState = "reached"
	// Unreachable: no connection, or no root rights; Error says why.
	Unreachable MachineState = "unreachable"
	// BlockedByFinding: reached, and a finding blocks it.
	BlockedByFinding MachineState = "blocked"
)

// MachineView is what a person wants to know of one machine.
type MachineView struct {
	Name  string       `json:"name"`
	Role  string       `json:"role"`
	Host  string       `json:"host"`
	State MachineState `json:"state"`
	Error string       `json:"error,omitempty"`
	// Code is the entry of the catalogue that explains Error.
	Code diag.Code `json:"code,omitempty"`
	OS   string    `json:"os,omitempty"`
	// Kernel is uname -r.
	Kernel string `json:"kernel,omitempty"`
	CPUs   int    `json:"cpus,omitempty"`
	// MemoryMiB and DiskFreeMiB are in MiB.
	MemoryMiB   int64     `json:"memoryMiB,omitempty"`
	DiskFreeMiB int64     `json:"diskFreeMiB,omitempty"`
	Driver      string    `json:"driver,omitempty"`
	GPUs        []GPUView `json:"gpus"`
	K3s         string    `json:"k3s,omitempty"`
	NodeIP      string    `json:"nodeIP,omitempty"`
	// AddressReason says why NodeIP was chosen.
	AddressReason string `json:"addressReason,omitempty"`
}

// GPUView is one GPU of a machine.
type GPUView struct {
	Index     int    `json:"index"`
	UUID      string `json:"uuid"`
	Model     string `json:"model"`
	MemoryMiB int64  `json:"memoryMiB"`
}

// CheckResult is what a look at all machines brought, before anything changes.
type CheckResult struct {
	Cluster  string         `json:"cluster"`
	Machines []MachineView  `json:"machines"`
	Findings []diag.Finding `json:"findings"`
	// Pairs are the ways between machines, where they were probed.
	Pairs []Pair `json:"pairs,omitempty"`
	// Images say which of the images asked for run where.
	Images []ImageView `json:"images,omitempty"`
}

// ActionView is one pending action.
type ActionView struct {
	ID      string   `json:"id"`
	Machine string   `json:"machine,omitempty"`
	Title   string   `json:"title"`
	Reason  string   `json:"reason"`
	Changes []string `json:"changes,omitempty"`
	// Chosen is what was chosen from what was seen, each with its reason.
	Chosen  []string `json:"chosen,omitempty"`
	Needs   []string `json:"needs,omitempty"`
	Consent string   `json:"consent,omitempty"`
}

// PlanResult is the check and what apply would do.
type PlanResult struct {
	CheckResult
	// Set names the versions; Untested is true for a user's own set.
	Set      string       `json:"set"`
	Untested bool         `json:"untested,omitempty"`
	Actions  []ActionView `json:"actions"`
}

// OutcomeView is what became of one action.
type OutcomeView struct {
	ActionView
	Status  string  `json:"status"`
	Error   string  `json:"error,omitempty"`
	Code    string  `json:"code,omitempty"` // entry of the failure catalogue, if one explains it
	Seconds float64 `json:"seconds"`
}

// ApplyResult is a whole run.
type ApplyResult struct {
	PlanResult
	Outcomes []OutcomeView `json:"outcomes"`
	// Changed counts the actions that were done.
	Changed int `json:"changed"`
	// Nodes is the state at the end.
	Nodes []NodeView `json:"nodes"`
	// Seconds is wall time.
	Seconds float64 `json:"seconds"`
	// Cost of the run in connections and remote commands, per machine.
	Traffic map[string]Traffic `json:"traffic,omitempty"`
}

// Traffic is what one machine was asked for. Bytes are payload on the wire.
type Traffic struct {
	Connections int   `json:"connections"`
	Commands    int   `json:"commands"`
	BytesUp     int64 `json:"bytesUp"`
	BytesDown   int64 `json:"bytesDown"`
}

// NodeView is one node of the cluster.
type NodeView struct {
	Name    string `json:"name"`
	Role    string `json:"role"`
	Ready   bool   `json:"ready"`
	Why     string `json:"why,omitempty"` // why it is not ready
	Version string `json:"version,omitempty"`
	Address string `json:"address,omitempty"`
	// GPUs counts GPUs. Allocatable and InUse count Resource: GPUs times Replicas where they are shared.
	GPUs        int64  `json:"gpus"`
	Allocatable int64  `json:"allocatable"`
	InUse       int64  `json:"inUse"`
	Model       string `json:"model,omitempty"`
	// Sharing is how the GPUs are shared, empty where they are not; Resource is what pods ask for.
	Sharing  string `json:"sharing,omitempty"`
	Replicas int64  `json:"replicas,omitempty"`
	Resource string `json:"resource,omitempty"`
	// Proven says whether the GPUs passed the smoke test; ProvenAt when.
	Proven   bool       `json:"proven"`
	ProvenAt *time.Time `json:"provenAt,omitempty"`
	// Unlisted: the node is in the cluster and not in gpuctl.yaml.
	Unlisted bool `json:"unlisted,omitempty"`
	// SpotNotice is when its provider said that it takes the machine away, RFC 3339.
	SpotNotice string `json:"spotNotice,omitempty"`
}

// StatusResult is the living cluster.
type StatusResult struct {
	Cluster string     `json:"cluster"`
	Nodes   []NodeView `json:"nodes"`
	// Missing are machines of gpuctl.yaml that are no nodes.
	Missing []string `json:"missing,omitempty"`
	// Operator is the GPU Operator's state: "ready", "not ready: ...", "absent".
	Operator string `json:"operator"`
	// RuntimePath is cdi or runtimeClass; PodLines are the lines a user's pod needs.
	RuntimePath string         `json:"runtimePath"`
	PodLines    []string       `json:"podLines"`
	Findings    []diag.Finding `json:"findings,omitempty"`
}
