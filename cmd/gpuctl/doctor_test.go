package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap"
	"github.com/gpuctl/gpuctl/internal/diag"
)

func sampleDoctor() bootstrap.DoctorResult {
	return bootstrap.DoctorResult{
		Cluster: "lab", Halves: []bootstrap.Half{{Name: "ssh", State: "whole"}, {Name: "api", State: "whole"}},
		Machines: sampleCheck().Machines[:1], Nodes: sampleNodes(),
		Findings:     []diag.Finding{diag.Found("gpu-lost", "gpu-1", "0000:18:00.0 fell off the bus")},
		Consequences: []diag.Finding{diag.Found("gpu-unhealthy", "gpu-1", "7 of 8")},
	}
}

func doctorOf(r bootstrap.DoctorResult, seen *bootstrap.DoctorOptions) *fakeEngine {
	return &fakeEngine{doctor: func(_ context.Context, o bootstrap.DoctorOptions) (bootstrap.DoctorResult, error) {
		*seen = o
		return r, nil
	}}
}

func TestDoctorShowsCausesAndWhatToSendTheProvider(t *testing.T) {
	var o bootstrap.DoctorOptions
	r := sampleDoctor()
	r.Cordoned = []string{"gpu-1"}
	got := runWith(t, doctorOf(r, &o), "", "doctor", "--cordon", "--no-pairs")
	if got.code != exitFindings || !o.Cordon || !o.NoPairs {
		t.Errorf("exit code %d, %+v", got.code, o)
	}
	golden(t, "doctor.txt", got.out)
	var back bootstrap.DoctorResult
	if err := json.Unmarshal([]byte(runWith(t, doctorOf(r, &o), "", "doctor", "-o", "json").out), &back); err != nil || len(back.Findings) != 1 || len(back.Consequences) != 1 {
		t.Errorf("%v %+v", err, back)
	}
}

func TestDoctorOfAHealthyCluster(t *testing.T) {
	var o bootstrap.DoctorOptions
	r := sampleDoctor()
	r.Findings, r.Consequences = nil, nil
	got := runWith(t, doctorOf(r, &o), "", "doctor")
	if got.code != 0 || !strings.Contains(got.out, "nothing is wrong") || strings.Contains(got.out, "provider") {
		t.Errorf("%d %s", got.code, got.out)
	}
	r.Halves[1] = bootstrap.Half{Name: "api", State: "dead", Why: []string{"refused"}}
	got = runWith(t, doctorOf(r, &o), "", "doctor")
	if !strings.Contains(got.out, "the API is dead: refused") || strings.Contains(got.out, "nothing is wrong") {
		t.Errorf("%s", got.out)
	}
}

func TestBundleIsPrivateAndOverwritesNothing(t *testing.T) {
	var o bootstrap.DoctorOptions
	r := sampleDoctor()
	r.Findings = nil
	path := filepath.Join(t.TempDir(), "support.tar.gz")
	if got := runWith(t, doctorOf(r, &o), "", "doctor", "--bundle", path); got.code != 0 || !strings.Contains(got.out, "support bundle:") {
		t.Fatalf("%d %s%s", got.code, got.out, got.err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	if got := runWith(t, doctorOf(r, &o), "", "doctor", "--bundle", path); got.code != exitUnexpected || !strings.Contains(got.err, "exists") {
		t.Errorf("%d %s", got.code, got.err)
	}
}

func TestCheckIgnoresAndWritesJUnit(t *testing.T) {
	var o bootstrap.CheckOptions
	f := &fakeEngine{check: func(_ context.Context, given bootstrap.CheckOptions) (bootstrap.CheckResult, error) {
		o = given
		r := sampleCheck()
		r.Findings = append(r.Findings, diag.Found("gpu-lost", "gpu-1", "a < b"))
		return r, nil
	}}
	path := filepath.Join(t.TempDir(), "check.xml")
	got := runWith(t, f, "", "check", "--no-pairs", "--ignore", "B7", "--junit", path)
	if got.code != exitFindings || !o.NoPairs || len(o.Ignore) != 1 || o.Ignore[0] != "mtu-mismatch" {
		t.Errorf("exit code %d, %+v", got.code, o)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "check.xml", string(data))
	if got := runWith(t, &fakeEngine{}, "", "check", "--ignore", "no-such-code"); got.code != exitUsage {
		t.Errorf("exit code %d: %s", got.code, got.err)
	}
}

func TestAFailureEndsWithTheEntryThatExplainsIt(t *testing.T) {
	var out strings.Builder
	w := &writer{w: &out}
	explained(w, "node-password-rejected")
	for _, part := range []string{"known failure: node-password-rejected: ", "cause  ", "fix    ", "gpuctl explain node-password-rejected"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("no %q in %s", part, out.String())
		}
	}
}
