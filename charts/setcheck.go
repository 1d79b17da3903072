package charts

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// SetAPIVersion and SetKind are what the first two lines of a set file say.
const (
	SetAPIVersion = "gpuctl.dev/v1alpha1"
	SetKind       = "Set"
)

// check returns every fault of a set, joined.
func (s Set) check() error {
	var faults []error
	want := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	matches := func(pattern, value, field, example string) {
		want(regexp.MustCompile(pattern).MatchString(value), "%s %q is not of the form %s", field, value, example)
	}
	want(s.APIVersion == SetAPIVersion, "apiVersion %q is not %q", s.APIVersion, SetAPIVersion)
	want(s.Kind == SetKind, "kind %q is not %q", s.Kind, SetKind)

	matches(`^v1\.\d+\.\d+(-[0-9a-z.]+)?\+k3s\d+$`, s.K3s.Version, "k3s.version", "v1.36.3+k3s1")
	for arch, sum := range s.K3s.SHA256 {
		want(arch == "amd64" || arch == "arm64", "k3s.sha256: %q is no architecture; use amd64 or arm64", arch)
		matches(`^[0-9a-f]{64}$`, sum, "k3s.sha256."+arch, "64 lower-case hex digits")
	}
	matches(`^\d+\.\d+\.\d+([~-][0-9A-Za-z.~-]+)?$`, s.Toolkit.Version, "toolkit.version", "1.20.0-1")
	matches(`^https?://`, s.Toolkit.Repository, "toolkit.repository", "https://...")
	matches(`^https?://`, s.Toolkit.KeyURL, "toolkit.keyURL", "https://...")
	matches(`^[0-9A-F]{40}$`, s.Toolkit.KeyFingerprint, "toolkit.keyFingerprint", "40 upper-case hex digits")
	matches(`^\d+$`, s.Driver.Branch, "driver.branch", `"580"`)
	matches(`^([0-9A-F]{40})?$`, s.Driver.KeyFingerprint, "driver.keyFingerprint", "40 upper-case hex digits")
	for name, key := range s.Driver.Keys {
		matches(`^[0-9A-F]{40}$`, key, "driver.keys."+name, "40 upper-case hex digits")
	}

	for _, v := range s.Driver.Images.Versions {
		matches(`^\d+\.\d+(\.\d+)?$`, v, "driver.images.versions", "580.173.02")
	}
	for _, os := range s.Driver.Images.OS {
		matches(`^[a-z]+[0-9.]+$`, os, "driver.images.os", "ubuntu24.04")
	}
	if p := s.Plugin; p.Chart != "" {
		want(p.Repository != "" && p.Version != "", "devicePlugin lacks repository or version")
		matches(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`, p.Namespace, "devicePlugin.namespace", "nvidia-device-plugin")
		matches(`^([0-9a-f]{64})?$`, p.SHA256, "devicePlugin.sha256", "64 lower-case hex digits")
	}
	want(s.Operator.Chart != "", "operator.chart is empty")
	want(s.Operator.Version != "", "operator.version is empty")
	want(s.Operator.Repository != "", "operator.repository is empty")
	matches(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`, s.Operator.Namespace, "operator.namespace", "gpu-operator")
	matches(`^([0-9a-f]{64})?$`, s.Operator.SHA256, "operator.sha256", "64 lower-case hex digits")
	want(s.Operator.RuntimePath == RuntimeCDI || s.Operator.RuntimePath == RuntimeClass,
		"operator.runtimePath %q is neither %q nor %q", s.Operator.RuntimePath, RuntimeCDI, RuntimeClass)

	want(s.Smoke.Image != "", "smoke.image is empty")
	want(len(s.Smoke.VectorAdd) > 0, "smoke.vectorAdd names no program")
	for _, p := range s.Smoke.VectorAdd {
		matches(`^/[A-Za-z0-9._/-]+$`, p, "smoke.vectorAdd", "/cuda-samples/vectorAdd")
	}
	matches(`^(sha256:[0-9a-f]{64})?$`, s.Smoke.Digest, "smoke.digest", "sha256:<64 hex digits>")
	want(len(s.Kubernetes.Validated) > 0, "kubernetes.validated is empty")
	for _, v := range append([]string{s.Kubernetes.Floor}, s.Kubernetes.Validated...) {
		matches(`^1\.\d+$`, v, "kubernetes", `"1.36"`)
	}
	return errors.Join(faults...)
}

// Minor cuts "v1.36.3+k3s1" to "1.36". Text that is no such version returns "".
func Minor(version string) string {
	m := regexp.MustCompile(`^v?(1\.\d+)(\.|$)`).FindStringSubmatch(version)
	if m == nil {
		return ""
	}
	return m[1]
}

// Supports says how a Kubernetes version stands to the set: "validated",
// "unlisted" (at or above the floor) or "below" it.
func (s Set) Supports(version string) string {
	minor := Minor(version)
	for _, v := range s.Kubernetes.Validated {
		if v == minor {
			return "validated"
		}
	}
	if minorNumber(minor) >= minorNumber(s.Kubernetes.Floor) {
		return "unlisted"
	}
	return "below"
}

func minorNumber(minor string) int {
	_, n, _ := strings.Cut(minor, ".")
	i, err := strconv.Atoi(n)
	if err != nil {
		return -1
	}
	return i
}
