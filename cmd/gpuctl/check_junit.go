package main

import (
	"cmp"
	"encoding/xml"
	"fmt"

	"github.com/gpuctl/gpuctl/bootstrap"
	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/ui"
)

// JUnit XML as CI systems read it: a suite for each machine and one for the
// cluster, a case for each finding and one for having been reached. What
// blocks is a failure, what warns or informs is output.
type (
	junitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		Failure *junitFailure `xml:"failure,omitempty"`
		Output  string        `xml:"system-out,omitempty"`
	}
	junitFailure struct {
		Type    string `xml:"type,attr"`
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

func checkJUnit(r bootstrap.CheckResult) ([]byte, error) {
	var all junitSuites
	for _, m := range r.Machines {
		reached := junitCase{Name: "reached", Class: "gpuctl.check." + m.Name}
		if m.State == bootstrap.Unreachable {
			reached.Failure = &junitFailure{Type: cmp.Or(string(m.Code), "unreachable"), Message: ui.Clean(m.Error)}
		}
		all.Suites = append(all.Suites, suiteOf(m.Name, append([]junitCase{reached}, findingCases(m.Name, r.Findings)...)))
	}
	if cases := findingCases("", r.Findings); len(cases) > 0 {
		all.Suites = append(all.Suites, suiteOf("cluster", cases))
	}
	data, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing the findings as XML: %w", err)
	}
	return append([]byte(xml.Header), append(data, '\n')...), nil
}

func suiteOf(name string, cases []junitCase) junitSuite {
	s := junitSuite{Name: name, Tests: len(cases), Cases: cases}
	for _, c := range cases {
		if c.Failure != nil {
			s.Failures++
		}
	}
	return s
}

func findingCases(machine string, findings []diag.Finding) []junitCase {
	var out []junitCase
	for _, f := range findings {
		if f.Machine != machine {
			continue
		}
		c := junitCase{Name: string(f.Code), Class: "gpuctl.check." + nameOf(machine)}
		text := string(f.Severity) + ": " + ui.Clean(f.Evidence)
		if f.Severity == diag.Blocks {
			p, _ := diag.Lookup(f.Code)
			c.Failure = &junitFailure{Type: string(f.Severity), Message: ui.Clean(f.Evidence), Text: p.Title}
		} else {
			c.Output = text
		}
		out = append(out, c)
	}
	return out
}
