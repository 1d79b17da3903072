// Package diag is the catalogue of the failures of this trade: what each looks
// like, what causes it and which commands mend it. Rooms of the tool report
// findings by code; this package knows what a code means.
package diag

import (
	"sort"
	"strings"
)

// Severity says what a finding does to a run.
type Severity string

const (
	// Blocks stops the machine (or the run) before anything changes.
	Blocks Severity = "blocks"
	// Warns is shown and does not stop.
	Warns Severity = "warns"
	// Informs is shown with -v or in JSON.
	Informs Severity = "informs"
)

// Code names a problem in words, in kebab case: "fabric-manager-down".
type Code string

// Finding is one problem seen on one machine or in the cluster.
type Finding struct {
	// Code is an entry of the catalogue.
	Code Code `json:"code"`
	// Machine is the machine's name; empty for the cluster as a whole.
	Machine string `json:"machine,omitempty"`
	// Evidence is what was seen, in one line, without secrets.
	Evidence string `json:"evidence"`
	// Severity is the entry's, unless the finder knows better or the user demoted it.
	Severity Severity `json:"severity"`
}

// Problem is an entry of the catalogue.
type Problem struct {
	Code Code `json:"code"`
	// Aliases are other names of the same failure, among them row numbers of its source.
	Aliases []string `json:"aliases,omitempty"`
	// Area is the part of the road: machine, network, driver, toolkit, gpu, cluster, workload, tool.
	Area     string   `json:"area"`
	Title    string   `json:"title"`
	Severity Severity `json:"severity"`
	// Symptom is what a person sees.
	Symptom string `json:"symptom"`
	Cause   string `json:"cause"`
	// Fix is commands or steps, in order.
	Fix []string `json:"fix"`
	// DependsOn are root causes that hide this entry when they are found too.
	DependsOn []Code `json:"dependsOn,omitempty"`
	// Match are lower-case fragments of error texts that identify the entry.
	Match []string `json:"match,omitempty"`
	// Likely are further fragments, too weak to name a failure by: they point a person
	// who pasted a text at the entry, and classify nothing.
	Likely []string `json:"likely,omitempty"`
	// Reference is a URL, or repo#issue.
	Reference string `json:"reference,omitempty"`
	// Unverified marks an entry whose facts were not checked against a source; it never blocks.
	Unverified bool `json:"unverified,omitempty"`
}

// Found makes a finding with the severity of its entry. An unknown code
// informs; a test of this repository keeps that from happening.
func Found(code Code, machine, evidence string) Finding {
	f := Finding{Code: code, Machine: machine, Evidence: evidence, Severity: Informs}
	if p, ok := Lookup(code); ok {
		f.Severity = p.Severity
		if p.Unverified && f.Severity == Blocks {
			f.Severity = Warns
		}
	}
	return f
}

// Lookup returns the entry of a code or of one of its aliases.
func Lookup(code Code) (Problem, bool) {
	for _, p := range Catalogue() {
		if p.Code == code {
			return p, true
		}
		for _, a := range p.Aliases {
			if strings.EqualFold(a, string(code)) {
				return p, true
			}
		}
	}
	return Problem{}, false
}

// Catalogue returns every entry, sorted by code.
func Catalogue() []Problem {
	var all []Problem
	for _, part := range [][]Problem{
		accessProblems(), machineProblems(), networkProblems(), driverProblems(), toolkitProblems(), gpuProblems(), conditionProblems(),
		sharingProblems(), clusterProblems(), operatorProblems(), smokeProblems(), imageProblems(), workloadProblems(), toolProblems(),
	} {
		all = append(all, part...)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Code < all[j].Code })
	return all
}

// AnyBlocks says whether one of the findings stops its machine.
func AnyBlocks(fs []Finding) bool {
	for _, f := range fs {
		if f.Severity == Blocks {
			return true
		}
	}
	return false
}
