package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap"
	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/doctor"
)

func sampleDoctor() bootstrap.DoctorResult {
	return bootstrap.DoctorResult{
		Cluster: "lab", Halves: []bootstrap.Half{{Name: "ssh", State: "whole"}, {Name: "api", State: "whole"}},
		Machines: sampleCheck().Machines[:1], Nodes: sampleNodes(),
		Findings:     []diag.Finding{diag.Found("gpu-lost", "gpu-1", "0000:18:00.0 fell off the bus")},
		Consequences: []diag.Finding{diag.Found("gpu-unhealthy", "gpu-1", "7 of 8")},
		Pods:         []doctor.Reason{{Pod: "team-a/train", Node: "gpu-1", Code: "gpu-lost", Why: "it failed on a machine whose GPUs are at fault"}},
		Reports: []bootstrap.FaultReport{{
			Machine: "gpu-1", Host: "10.0.0.11", Product: "Supermicro SYS-821GE", OS: "Ubuntu 24.04.1 LTS", Kernel: "6.8.0-45-generic", Driver: "580.95.05",
			Seen: time.Date(2026, 8, 27, 18, 5, 38, 0, time.UTC), Booted: time.Date(2026, 8, 27, 18, 0, 0, 0, time.UTC),
			GPUs:   []host.GPU{{Index: 0, UUID: "GPU-1", Name: "NVIDIA H100 PCIe", PCI: "0000:18:00.0", Serial: "1650522000000"}},
			Faults: []diag.Finding{diag.Found("gpu-lost", "gpu-1", "0000:18:00.0 fell off the bus")},
			Log:    []string{"2026-08-27T18:00:41Z NVRM: Xid (PCI:0000:18:00): 79, GPU has fallen off the bus."},
		}},
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
	r.Findings, r.Consequences, r.Reports, r.Pods = nil, nil, nil, nil
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

func TestReportForTheProviderIsAFileOfItsOwn(t *testing.T) {
	var o bootstrap.DoctorOptions
	path := filepath.Join(t.TempDir(), "provider.txt")
	if got := runWith(t, doctorOf(sampleDoctor(), &o), "", "doctor", "--report", path); got.code != exitFindings || !strings.Contains(got.out, "report: "+path) {
		t.Fatalf("%d %s%s", got.code, got.out, got.err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"gpu-1 (10.0.0.11)", "serial 1650522000000", "GPU-1", "driver 580.95.05", "2026-08-27T18:00:41Z NVRM: Xid", "A GPU does not answer"} {
		if !strings.Contains(string(data), part) {
			t.Errorf("no %q in the report:\n%s", part, data)
		}
	}
	if got := runWith(t, doctorOf(sampleDoctor(), &o), "", "doctor", "--report", path); !strings.Contains(got.err, "exists") {
		t.Errorf("it was overwritten: %d %s", got.code, got.err)
	}
	r := sampleDoctor()
	r.Reports = nil
	other := filepath.Join(t.TempDir(), "provider.txt")
	if got := runWith(t, doctorOf(r, &o), "", "doctor", "--report", other); strings.Contains(got.out, "report:") {
		t.Errorf("a report of nothing: %s", got.out)
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
