//go:build unix

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every bad input and the tests that show what becomes of it: a test, and the
// row of its table where it has one.
func badInputs() map[string][]string {
	const way, machine = "cmd/gpuctl/badinput_way_test.go TestBadInputOnTheWay: ", "cmd/gpuctl/badinput_test.go TestBadInputOnTheMachine: "
	return map[string][]string{
		"unreachable host":              {way + "unreachable host", "bootstrap/sshconn/failure_test.go TestNobodyThere"},
		"wrong key":                     {way + "wrong key", "bootstrap/sshconn/auth_test.go TestAgentFullOfKeys"},
		"changed host key":              {way + "changed host key", "bootstrap/sshconn/hostkeys_test.go TestChangedKey"},
		"wrong sudo password":           {way + "wrong sudo password", "bootstrap/sshconn/sudo_test.go TestSudoWrongPasswordOnce", "e2e/refused_test.go TestWrongSudoPassword"},
		"no sudo":                       {way + "no sudo", way + "may not become root", "bootstrap/sshconn/sudo_test.go TestNoSudoProgram"},
		"duplicate host or name":        {machine + "duplicate name", machine + "duplicate host", "bootstrap/host/findings_test.go TestCrossFindings"},
		"names Kubernetes rejects":      {machine + "names Kubernetes rejects", "internal/config/config_test.go TestNodeName"},
		"no GPU where one was promised": {machine + "no GPU where one was promised"},
		"fewer than promised":           {machine + "fewer than promised"},
		"disk too small":                {machine + "disk too small"},
		"foreign Kubernetes":            {machine + "foreign Kubernetes", "bootstrap/host/findings_test.go TestFindings"},
		"ports taken":                   {machine + "ports taken", "bootstrap/host/findings_test.go TestFindings"},
		"clock off by minutes":          {machine + "clock off by minutes", "bootstrap/host/cases_test.go TestClocksOfFourMachines"},
		"unsupported OS":                {machine + "unsupported OS"},
		"AMD GPU":                       {machine + "AMD GPU"},
		"checksum mismatch":             {"bootstrap/k3s/scripts_test.go TestDownloadScript: other bytes", "charts/archive_test.go TestFetchChecksTheDigestEachTime", "charts/oci_test.go TestAnArchiveOfARegistryIsCheckedToo"},
		"a mirror that answers 404":     {"bootstrap/k3s/scripts_test.go TestDownloadScript: absent", "charts/archive_test.go TestFetchFailures: no repository", "internal/image/image_test.go TestWhatIsNotReadSaysWhy"},
		"a mirror that answers HTML":    {"bootstrap/k3s/scripts_test.go TestDownloadScript: a web page", "charts/archive_test.go TestFetchFailures: a web page", "bootstrap/nvidia/toolkit_test.go TestOnlyThePinnedKeyPasses: a web page", "internal/image/image_test.go TestWhatIsNotReadSaysWhy"},
		"disk full in mid-upload":       {"bootstrap/sshconn/diskfull_test.go TestDiskFullInMidUpload"},
		"chart not found":               {"charts/archive_test.go TestFetchFailures: no such chart", "charts/archive_test.go TestFetchFailures: no such version"},
		"image not pullable":            {"internal/smoke/run_test.go TestRun: no image", "internal/doctor/troubles_test.go TestTroubles: other image", "internal/image/image_test.go TestWhatIsNotReadSaysWhy"},
		"operator never ready":          {"charts/codes_test.go TestWaitsEndWithAnEntry: ClusterPolicy", "charts/ready_test.go TestWaitOperatorReady"},
		"a pod that never schedules":    {"internal/smoke/run_test.go TestRun: not placed", "internal/smoke/run_test.go TestRun: slow start without a reason"},
	}
}

func TestEveryBadInputHasItsTest(t *testing.T) {
	if n := len(badInputs()); n != 23 {
		t.Errorf("%d bad inputs are listed", n)
	}
	for name, tests := range badInputs() {
		for _, at := range tests {
			file, test, _ := strings.Cut(at, " ")
			test, row, _ := strings.Cut(test, ": ")
			text, err := os.ReadFile(filepath.Join("..", "..", file))
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			if !declares(parsed, test) {
				t.Errorf("%s: %s has no %s", name, file, test)
			}
			if row != "" && !strings.Contains(string(text), `"`+row+`"`) {
				t.Errorf("%s: %s has no row %q", name, file, row)
			}
		}
	}
}

func declares(f *ast.File, name string) bool {
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.Name == name {
			return true
		}
	}
	return false
}
