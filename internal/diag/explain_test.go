package diag

import (
	"errors"
	"fmt"
	"testing"
)

// Texts as people pasted them in the threads that the entries name.
func TestExplainTextOfPastedErrors(t *testing.T) {
	for text, code := range map[string]Code{
		"Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 570.124":                                                                  "driver-version-mismatch",
		"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.":            "driver-not-loaded",
		`Failed to create pod sandbox: rpc error: code = Unknown desc = failed to get sandbox runtime: no runtime for "nvidia" is configured`:                        "runtime-not-configured",
		"E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 4750 (unattended-upgr)":                                                            "package-lock-held",
		"nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.8, please update your driver to a newer version, or use an earlier cuda container": "smoke-image-too-new",
		"Allocate failed due to rpc error: code = Unknown desc = maximum request size for shared resources is 1; found 10, which is unexpected":                      "smoke-shared-request",
		"NVRM: The NVIDIA GPU 0000:02:00.0 (PCI ID: 10de:2c58)\nNVRM: installed in this system requires use of the NVIDIA\nNVRM: open kernel modules.":               "driver-needs-open",
		"Failed to initialize NVML: Unknown Error":                                                                                    "nvml-lost",
		"CUDA error: system not yet initialized":                                                                                      "fabric-manager-down",
		"modprobe: ERROR: could not insert 'nvidia': Key was rejected by service":                                                     "secure-boot-unsigned",
		"Error: another operation (install/upgrade/rollback) is in progress":                                                          "release-pending",
		"open failed: administratively prohibited: open failed":                                                                       "ssh-forwarding-off",
		"sudo: a password is required":                                                                                                "sudo-password-needed",
		"RuntimeError: CUDA error: no kernel image is available for execution on the device":                                          "smoke-image-too-old",
		`Failed to pull image "nginx": toomanyrequests: You have reached your pull rate limit`:                                        "pull-rate-limit",
		"installing the release: fetching chart gpu-operator v26.7.0: getting https://mirror/gpu-operator-v26.7.0.tgz: 404 Not Found": "chart-unavailable",
		"fetching chart gpu-operator v26.7.0: digest is sha256:aa, wanted sha256:bb":                                                  "chart-digest-differs",
		"downloading k3s: https://mirror/v1.36.3%2Bk3s1/k3s: 404 Not Found":                                                           "k3s-unavailable",
		"gpu-1: download k3s: exit code 44: sha-256 of k3s differs: got a, want b, from https://mirror/k3s":                           "k3s-binary-mismatch",
		"gpu-1: upload: exit code 1: cat: write error: No space left on device":                                                       "disk-too-small",
		"all is well": "",
	} {
		found := ExplainText(text)
		switch {
		case code == "" && len(found) > 0:
			t.Errorf("%q is explained by %s", text, found[0].Code)
		case code != "" && (len(found) == 0 || found[0].Code != code):
			t.Errorf("%q: %v, want %s", text, found, code)
		}
	}
}

type coded struct{ code Code }

func (coded) Error() string    { return "sudo: a password is required" }
func (c coded) DiagCode() Code { return c.code }

type named struct{ code string }

func (named) Error() string      { return "x" }
func (n named) DiagCode() string { return n.code }

func TestExplainTrustsTheErrorsCode(t *testing.T) {
	for err, code := range map[error]Code{
		coded{"gpu-lost"}:                       "gpu-lost",
		coded{""}:                               "sudo-password-needed",
		named{"ssh-refused"}:                    "ssh-refused",
		fmt.Errorf("a: %w", named{"gpu-lost"}):  "gpu-lost",
		errors.New("toomanyrequests: you have"): "pull-rate-limit",
		errors.New("x"):                         "",
	} {
		p, ok := Explain(err)
		if p.Code != code || ok != (code != "") {
			t.Errorf("%v: %s, want %s", err, p.Code, code)
		}
	}
	if _, ok := Explain(nil); ok {
		t.Error("nil is explained")
	}
}

func TestNearestAndAlike(t *testing.T) {
	for typed, code := range map[string]string{
		"fabric-manger-down": "fabric-manager-down", "gpu_lost": "gpu-lost", "Driver-Missing": "driver-missing", "what-is-this-thing": "",
	} {
		if got := Nearest(typed); got != code {
			t.Errorf("%s: %q, want %q", typed, got, code)
		}
	}
	if found := Alike("my pods cannot bind their PersistentVolumeClaims", 3); len(found) == 0 || found[0].Code != "pod-volume" {
		t.Errorf("%+v", found)
	}
	if found := Alike("and the of", 3); len(found) > 0 {
		t.Errorf("%+v", found)
	}
	if p, ok := Lookup("c1"); !ok || p.Code != "driver-version-mismatch" {
		t.Error("an alias in lower case is not found")
	}
}
