package smoke

import (
	"fmt"
	"slices"
	"strings"
)

// Status is a verdict.
type Status string

const (
	// Passed: proven.
	Passed Status = "passed"
	// Failed: proven not to work, or the proof does not hold.
	Failed Status = "failed"
	// InUse: held by other pods and not tested.
	InUse Status = "in-use"
	// Unverified: it looks right, but the machine could not be asked, so nothing is proven.
	Unverified Status = "unverified"
	// Skipped: an earlier step failed, or there was nothing to test with.
	Skipped Status = "skipped"
)

// The codes of failures. They are entries of the failure catalogue.
const (
	CodeCount         = "gpu-count-differs"
	CodeNoAllocatable = "smoke-nothing-allocatable"
	CodeLogCut        = "smoke-log-cut"
	CodeSMI           = "smoke-nvidia-smi-failed"
	CodeProgram       = "smoke-program-missing"
	CodeForeignUUID   = "smoke-uuid-foreign"
	CodeDuplicateUUID = "smoke-uuid-duplicate"
	CodeUUIDCount     = "smoke-uuid-count"
	CodeDeviceNodes   = "smoke-device-nodes"
	CodeCompute       = "smoke-compute-failed"
	CodeImageTooNew   = "smoke-image-too-new"
	CodeImageTooOld   = "smoke-image-too-old"
	CodeImagePull     = "smoke-image-pull"
	CodeContainer     = "smoke-container-failed"
	CodeUnschedulable = "smoke-unschedulable"
	CodeAdmission     = "smoke-admission-refused"
	CodeSharedRequest = "smoke-shared-request"
	CodeSharedUneven  = "smoke-shared-uneven"
	CodeOneTooMany    = "smoke-one-too-many"
	CodeTimeout       = "smoke-timeout"
)

// Finding is why something failed.
type Finding struct {
	Code     string `json:"code"`
	Evidence string `json:"evidence"`
}

// GPUResult is the verdict on one GPU.
type GPUResult struct {
	UUID   string `json:"uuid"`
	Name   string `json:"name,omitempty"`
	Status Status `json:"status"`
	Detail string `json:"detail,omitempty"`
	// Of is the UUID of the GPU that a slice is part of.
	Of string `json:"of,omitempty"`
}

// Result is the verdict on what a pod printed.
type Result struct {
	// SMI is the verdict of step 2, Compute that of step 3.
	SMI, Compute Status
	GPUs         []GPUResult
	Findings     []Finding
}

// Judge holds what a pod printed against what the machine lists. granted is how
// many GPUs the pod was given. It is pure. A pod that names a GPU the machine does
// not have, one twice, or another number than it was given, fails whatever else it
// prints: image or injection lies.
func Judge(host []GPU, granted int, log Log) Result {
	r := Result{SMI: Passed, Compute: Passed}
	fail := func(of *Status, code, format string, args ...any) {
		*of = Failed
		r.Findings = append(r.Findings, Finding{code, fmt.Sprintf(format, args...)})
	}
	switch {
	case !log.Begun:
		evidence := "the pod printed nothing of this run"
		if log.Stray > 0 {
			evidence = fmt.Sprintf("%d lines carry the mark of another run", log.Stray)
		}
		fail(&r.SMI, CodeLogCut, "%s", evidence)
	case log.SMI != 0:
		fail(&r.SMI, CodeSMI, "nvidia-smi in the pod: exit %d: %s", log.SMI, strings.Join(log.Text, " "))
	case !log.Ended:
		fail(&r.Compute, CodeLogCut, "the log ends before the test did")
	case log.Program == "":
		fail(&r.Compute, CodeProgram, "the image has no vectorAdd where it was looked for")
	}
	if r.SMI == Failed {
		r.Compute = Skipped
		r.GPUs = untested(host, nil, granted)
		return r
	}
	identity(&r, host, granted, log, fail)
	compute(&r, host, log, fail)
	r.GPUs = append(r.GPUs, untested(host, log.Units(), granted)...)
	if r.Compute == Passed && len(host) == 0 {
		r.Compute = Unverified
	}
	return r
}

// identity: the GPUs that the pod sees are the machine's, each once, as many as it was given.
func identity(r *Result, host []GPU, granted int, log Log, fail func(*Status, string, string, ...any)) {
	known, seen := map[string]bool{}, map[string]int{}
	for _, g := range host {
		known[g.UUID] = true
	}
	units := log.Units()
	for _, g := range units {
		seen[g.UUID]++
		switch {
		case seen[g.UUID] == 2:
			fail(&r.Compute, CodeDuplicateUUID, "the pod lists %s more than once", g.UUID)
		case seen[g.UUID] == 1 && len(host) > 0 && !known[g.UUID]:
			fail(&r.Compute, CodeForeignUUID, "the pod lists %s, which the machine does not have", g.UUID)
		}
	}
	if len(units) != granted {
		fail(&r.Compute, CodeUUIDCount, "the pod was given %d GPUs and lists %d", granted, len(units))
	}
	if len(log.Slices) == 0 && len(log.Devices) != len(units) {
		fail(&r.Compute, CodeDeviceNodes, "the container has %d GPU device nodes and lists %d GPUs", len(log.Devices), len(units))
	}
}

// compute: vectorAdd ran once on each and passed.
func compute(r *Result, host []GPU, log Log, fail func(*Status, string, string, ...any)) {
	runs := map[string][]ProgramRun{}
	for _, run := range log.Runs {
		runs[run.UUID] = append(runs[run.UUID], run)
	}
	judged := map[string]bool{}
	for _, g := range log.Units() {
		if judged[g.UUID] {
			continue
		}
		judged[g.UUID] = true
		result := GPUResult{UUID: g.UUID, Name: g.Name, Status: Passed}
		of := runs[g.UUID]
		switch {
		case len(of) != 1:
			result.Status, result.Detail = Failed, fmt.Sprintf("vectorAdd ran %d times, want once", len(of))
		case !of[0].Passed:
			result.Status, result.Detail = Failed, fmt.Sprintf("vectorAdd: exit %d: %s", of[0].Code, lastWords(of[0].Output))
		}
		if result.Status == Failed && log.Program != "" {
			fail(&r.Compute, computeCode(of), "%s: %s", g.UUID, result.Detail)
		}
		if len(host) > 0 && !slices.ContainsFunc(host, func(h GPU) bool { return h.UUID == g.UUID }) {
			result.Status, result.Detail = Failed, "the machine does not have it"
		}
		r.GPUs = append(r.GPUs, result)
	}
}

func computeCode(runs []ProgramRun) string {
	if len(runs) == 1 {
		if code := Classify(strings.Join(runs[0].Output, " ")); code != "" {
			return code
		}
	}
	return CodeCompute
}

// untested are the machine's GPUs that the pod did not see: in use if it was given fewer than there are.
func untested(host, seen []GPU, granted int) []GPUResult {
	saw := map[string]bool{}
	for _, g := range seen {
		saw[g.UUID] = true
	}
	var rest []GPUResult
	for _, g := range host {
		if saw[g.UUID] {
			continue
		}
		result := GPUResult{UUID: g.UUID, Name: g.Name, Status: InUse, Detail: "in use, not tested"}
		if granted >= len(host) {
			result.Status, result.Detail = Failed, "the pod did not see it"
		}
		rest = append(rest, result)
	}
	return rest
}

// lastWords are the last lines of a failed program that say something.
func lastWords(output []string) string {
	var said []string
	for _, line := range output {
		if line = strings.TrimSpace(line); line != "" {
			said = append(said, line)
		}
	}
	return strings.Join(said[max(len(said)-2, 0):], " ")
}

// Classify names the code of a text of a kubelet, a container runtime or a CUDA
// program, "" if it is none of those known.
func Classify(text string) string {
	text = strings.ToLower(text)
	for _, known := range []struct{ fragment, code string }{
		// NVIDIA_REQUIRE_CUDA of the image: the cluster is fine (nvidia-container-toolkit#152).
		{"unsatisfied condition: cuda>=", CodeImageTooNew},
		{"cuda driver version is insufficient for cuda runtime version", CodeImageTooNew},
		{"no kernel image is available", CodeImageTooOld},
		{"maximum request size for shared resources", CodeSharedRequest},
		{"system not yet initialized", "fabric-not-ready"},
		{"imagepullbackoff", CodeImagePull},
		{"errimagepull", CodeImagePull},
		{"invalidimagename", CodeImagePull},
		{"unexpectedadmissionerror", CodeAdmission},
		{"unschedulable", CodeUnschedulable},
		{"no runtime for", CodeContainer},
		{"createcontainererror", CodeContainer},
		{"runcontainererror", CodeContainer},
		{"startcontainer", CodeContainer},
		{"failedcreatepodsandbox", CodeContainer},
	} {
		if strings.Contains(text, known.fragment) {
			return known.code
		}
	}
	return ""
}
