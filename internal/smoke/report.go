package smoke

import (
	"cmp"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"strings"
	"time"
)

// Report is the outcome of one test of several nodes. Its JSON is a promise.
type Report struct {
	Started  time.Time    `json:"started"`
	Finished time.Time    `json:"finished"`
	Image    string       `json:"image"`
	ByDigest bool         `json:"byDigest"`
	Passed   bool         `json:"passed"`
	Nodes    []NodeReport `json:"nodes"`
}

// NodeReport is the outcome of one node.
type NodeReport struct {
	Node     string      `json:"node"`
	Status   Status      `json:"status"`
	Driver   string      `json:"driver,omitempty"`
	Steps    []Step      `json:"steps"`
	GPUs     []GPUResult `json:"gpus,omitempty"`
	Findings []Finding   `json:"findings,omitempty"`
	Seconds  float64     `json:"seconds"`
}

// The steps of the ladder.
const (
	StepCount   = "count"
	StepSMI     = "nvidia-smi"
	StepCompute = "vector-add"
	// StepBeside and StepOneMore are of shared GPUs.
	StepBeside  = "side-by-side"
	StepOneMore = "one-more-waits"
)

// Step is one step of the ladder on one node.
type Step struct {
	Name   string `json:"name"`
	Status Status `json:"status"`
	// Seconds is what the step took, waiting included.
	Seconds float64 `json:"seconds"`
	// Detail is what it showed, or why it failed.
	Detail string `json:"detail,omitempty"`
}

// settle gives a node its overall verdict: the worst of its steps, and never
// passed while a GPU was not tested.
func (n *NodeReport) settle() {
	n.Status = Passed
	rank := map[Status]int{Passed: 0, Unverified: 1, InUse: 2, Skipped: 3, Failed: 4}
	worse := func(s Status) {
		if rank[s] > rank[n.Status] {
			n.Status = s
		}
	}
	for _, s := range n.Steps {
		worse(s.Status)
	}
	for _, g := range n.GPUs {
		worse(g.Status)
	}
}

// JSON is the report as it stands in files and on standard output.
func (r Report) JSON() ([]byte, error) {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing the smoke report: %w", err)
	}
	return append(text, '\n'), nil
}

type junitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Suites  []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Time     string      `xml:"time,attr"`
	Stamp    string      `xml:"timestamp,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string     `xml:"name,attr"`
	Class   string     `xml:"classname,attr"`
	Time    string     `xml:"time,attr,omitempty"`
	Failure *junitNote `xml:"failure,omitempty"`
	Skipped *junitNote `xml:"skipped,omitempty"`
}

type junitNote struct {
	Message string `xml:"message,attr"`
}

// JUnit is reports as JUnit XML: a suite per node, a case per step and per GPU.
// What was not tested or not verified is skipped, not passed.
func JUnit(reports ...Report) ([]byte, error) {
	var doc junitSuites
	for _, r := range reports {
		doc.Suites = append(doc.Suites, r.suites()...)
	}
	text, err := xml.MarshalIndent(doc, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing the smoke report: %w", err)
	}
	return append([]byte(xml.Header), append(text, '\n')...), nil
}

func (r Report) suites() []junitSuite {
	var suites []junitSuite
	for _, n := range r.Nodes {
		suite := junitSuite{Name: n.Node, Time: fmt.Sprintf("%.3f", n.Seconds), Stamp: r.Started.UTC().Format("2006-01-02T15:04:05")}
		for _, s := range n.Steps {
			suite.add(s.Name, n.Node, s.Status, cmp.Or(evidence(n.Findings), s.Detail))
			suite.Cases[len(suite.Cases)-1].Time = fmt.Sprintf("%.3f", s.Seconds)
		}
		for _, g := range n.GPUs {
			suite.add(g.UUID, n.Node, g.Status, g.Detail)
		}
		suites = append(suites, suite)
	}
	return suites
}

func (s *junitSuite) add(name, node string, status Status, why string) {
	c := junitCase{Name: name, Class: "gpuctl.smoke." + node}
	switch status {
	case Failed:
		s.Failures++
		c.Failure = &junitNote{why}
	case Passed:
	default:
		s.Skipped++
		c.Skipped = &junitNote{strings.TrimSpace(string(status) + " " + why)}
	}
	s.Tests++
	s.Cases = append(s.Cases, c)
}

func evidence(findings []Finding) string {
	var all []string
	for _, f := range findings {
		all = append(all, f.Code+": "+f.Evidence)
	}
	return strings.Join(all, "; ")
}

// ProvenAnnotation is the annotation of a node that passed; its value is a Proof in JSON.
const ProvenAnnotation = "gpuctl.dev/proven"

// Proof is what stays on a node that passed. It is worth something only for the
// driver and the GPUs it names.
type Proof struct {
	Time   time.Time `json:"time"`
	UUIDs  []string  `json:"uuids"`
	Driver string    `json:"driver,omitempty"`
	Image  string    `json:"image"`
}

// Proof returns what to write on a node, and whether all its tests passed: a node
// with slices of several profiles has one test for each. A slice stands for its GPU.
func (r Report) Proof(node string) (Proof, bool) {
	p := Proof{Time: r.Finished.UTC().Truncate(time.Second), Image: r.Image}
	tested, named := false, map[string]bool{}
	for _, n := range r.Nodes {
		if n.Node != node {
			continue
		}
		if n.Status != Passed {
			return Proof{}, false
		}
		tested, p.Driver = true, n.Driver
		for _, g := range n.GPUs {
			uuid := g.UUID
			if g.Of != "" {
				uuid = g.Of
			}
			if !named[uuid] {
				p.UUIDs = append(p.UUIDs, uuid)
			}
			named[uuid] = true
		}
	}
	return p, tested
}

// attach names the GPU of each slice.
func (n *NodeReport) attach(host []GPU) {
	of := map[string]string{}
	for _, h := range host {
		of[h.UUID] = h.Of
	}
	for i := range n.GPUs {
		n.GPUs[i].Of = of[n.GPUs[i].UUID]
	}
}

// Annotation is the proof as the annotation's value.
func (p Proof) Annotation() (string, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return "", fmt.Errorf("writing a proof: %w", err)
	}
	return string(text), nil
}

// ParseProof reads an annotation's value.
func ParseProof(value string) (Proof, error) {
	var p Proof
	if err := json.Unmarshal([]byte(value), &p); err != nil {
		return Proof{}, fmt.Errorf("reading annotation %s: %w", ProvenAnnotation, err)
	}
	if len(p.UUIDs) == 0 || p.Time.IsZero() {
		return Proof{}, fmt.Errorf("reading annotation %s: it names no GPU or no time", ProvenAnnotation)
	}
	return p, nil
}
