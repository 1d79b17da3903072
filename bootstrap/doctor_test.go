package bootstrap

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuctl/gpuctl/bootstrap/host"
	"github.com/gpuctl/gpuctl/bootstrap/k3s"
	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/doctor"
	"github.com/gpuctl/gpuctl/internal/kube"
)

// canaries must be found nowhere in a bundle, wherever they were planted.
func canaries() map[string]string {
	return map[string]string{
		"agent token":  "K10" + strings.Repeat("ab", 32) + "::node:canary-agent-token",
		"server token": "canary-server-token-0123",
		"probe key":    "canary-probe-key",
		"user":         "alice",
		"address":      "203.0.113.77",
		"IPv6":         "2001:db8:5::77",
		"MAC":          "0a:1b:2c:3d:4e:5f",
		"DNS name":     "gpu7.customer.example",
		"host name":    "customer-box-7",
		"password":     "canary-passw0rd",
		"private key":  "canaryprivatekeymaterial",
		"JWT":          "eyJhbGciOiJSUzI1NiJ9.canary-payload.canary-signature",
		"bearer":       "canarybearer0123",
		"registry":     "nvapi-canary0123456789",
		"base64":       "Q2FuYXJ5U2VjcmV0S2V5TWF0ZXJpYWwwMTIzNDU2Nzg5QUJD",
		"env value":    "canary-env-value",
		"dashed":       "203-0-113-77",
		"machine id":   "canary-machine-id",
		"log":          "canary-of-a-users-log",
	}
}

// wounded is a synthetic cluster with a canary in every text that a machine or
// the API could have written it into.
func wounded(t *testing.T) (*Engine, DoctorResult) {
	t.Helper()
	c := canaries()
	w := clusterOf(t, "server", "gpu-1")
	inv := w.config.Inventory()
	inv.Machines[1].Host, inv.Machines[1].User = c["DNS name"], c["user"]
	s := sightOf(w, 0, 1)
	f := s.facts["gpu-1"]
	f.System.Value.Login, f.System.Value.Hostname, f.System.Value.MachineID = c["user"], c["host name"], c["machine id"]
	f.Network = host.Known(host.Network{Interfaces: []host.Interface{iface("eth0", c["address"]+"/24"), iface("eth1", c["IPv6"]+"/64")}})
	f.Files = host.Known(map[string]host.File{"/var/lib/rancher/k3s/server/token": {Kind: "file"}})
	s.facts["gpu-1"] = f
	s.unreached = map[string]error{"server": errors.New("connecting to " + c["user"] + "@" + c["address"] + ":22: user " + c["user"] + " refused, /home/" + c["user"] + "/.ssh/id")}
	s.credentials = &k3s.Credentials{AgentToken: c["agent token"], ServerToken: c["server token"]}
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "d", Annotations: map[string]string{"a": c["env value"]}}}
	pod.Spec.Containers = []corev1.Container{{Name: "c", Env: []corev1.EnvVar{{Name: "X", Value: c["env value"]}}, Args: []string{c["env value"]}}}
	pod.Status.Message = "pull failed: Authorization: Bearer " + c["bearer"] + " for " + c["registry"]
	event := corev1.Event{Message: "cannot use password=" + c["password"] + ` {"token":"` + c["JWT"] + `"} on ` + c["host name"]}
	lines := []string{
		"joining https://" + c["address"] + ":6443 with token " + c["agent token"] + " and " + c["server token"],
		"-----BEGIN EC PRIVATE KEY-----", c["private key"], "-----END EC PRIVATE KEY-----",
		"link " + c["MAC"] + " host ip-" + c["dashed"] + " key " + c["base64"] + " probe " + c["probe key"],
	}
	e := &Engine{settings: Settings{Key: c["probe key"], Owner: "owner", Inventory: inv}, want: w}
	r := DoctorResult{Cluster: "test", Findings: []diag.Finding{{Code: "gpu-lost", Machine: "gpu-1", Evidence: "seen on " + c["address"] + ", " + c["DNS name"]}}}
	r.Halves = halves(w.machines, s, errors.New("dial "+c["address"]))
	r.Pods = []doctor.Reason{{Pod: "d/p", Code: "nvml-lost", Why: "its log ends with: password=" + c["password"] + " on " + c["address"]}}
	r.Reports = []FaultReport{{Machine: "gpu-1", Host: c["DNS name"], Log: []string{"NVRM: " + c["host name"] + " " + c["address"]}}}
	r.seen = patient{sight: s, tails: map[string]string{"d/p": c["log"]}, objects: kube.Objects{Pods: []corev1.Pod{pod}, Events: []corev1.Event{event}}, journals: map[string][]string{"gpu-1": lines}}
	return e, r
}

// unpack returns the files of a bundle.
func unpack(t *testing.T, data []byte) map[string]string {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for archive := tar.NewReader(zip); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(h.Name, "gpuctl-support/")] = string(content)
	}
}

func TestBundleHoldsNoCanary(t *testing.T) {
	e, r := wounded(t)
	var first, second bytes.Buffer
	for _, into := range []*bytes.Buffer{&first, &second} {
		if err := e.Bundle(into, r); err != nil {
			t.Fatal(err)
		}
	}
	files := unpack(t, first.Bytes())
	for _, name := range []string{"README.txt", "report.json", "cluster.json", "machines/gpu-1.json", "machines/gpu-1.log"} {
		if files[name] == "" {
			t.Errorf("%s is missing", name)
		}
	}
	for name, text := range files {
		for what, canary := range canaries() {
			if strings.Contains(name+text, canary) {
				t.Errorf("%s holds the %s: %s", name, what, text)
			}
		}
		if strings.HasSuffix(name, ".json") && !json.Valid([]byte(text)) {
			t.Errorf("%s is no JSON any more: %s", name, text)
		}
	}
	ip := newScrubber("owner", nil, nil).pseudonym("ip", canaries()["address"])
	for _, name := range []string{"report.json", "machines/gpu-1.json", "machines/gpu-1.log"} {
		if !strings.Contains(files[name], ip) {
			t.Errorf("%s does not name the address by its pseudonym %s", name, ip)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two bundles of the same sight differ")
	}
}

func TestScrubLeavesWhatHelps(t *testing.T) {
	s := newScrubber("owner", nil, map[string]string{"alice": "user-1"})
	for _, text := range []string{
		"driver 580.95.05 on 0000:18:00.0 at 06:22:43", "GPU-5d5a3bd6-8f1c-4c42-a2be-ac0a4f1ac3c8", "pod 10.42.1.7 asks 10.43.0.10 and 127.0.0.1",
		"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", `"tokens": 3, "secret": null`, "malice alicent",
		"/var/lib/rancher/k3s/agent/containerd/io.containerd.snapshotter.v1.overlayfs",
	} {
		if got := s.scrub(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestCausesComeFirstAndHideWhatFollows(t *testing.T) {
	found := []diag.Finding{
		diag.Found("memory-small", "a", "1 GiB"),
		diag.Found("clock-skew", "a", "clocks differ by 90 s"),
		diag.Found("clock-wrong", "a", "90 s behind"),
		diag.Found("clock-wrong", "a", "not synchronised"),
	}
	causes, rest := causesAndConsequences(found)
	if len(causes) != 2 || causes[0].Code != "clock-wrong" || causes[0].Evidence != "90 s behind; not synchronised" || causes[1].Code != "memory-small" {
		t.Errorf("causes %+v", causes)
	}
	if len(rest) != 1 || rest[0].Code != "clock-skew" {
		t.Errorf("consequences %+v", rest)
	}
}

func TestK3sThatDoesNotRunIsExplainedByItsLog(t *testing.T) {
	w := clusterOf(t, "server", "gpu-1")
	s := sightOf(w, 0, 1)
	f := s.facts["gpu-1"]
	f.K3s = host.Known(host.K3s{Version: "v1.36.3+k3s1", Units: map[string]host.Unit{"k3s-agent": {Active: "activating", Sub: "auto-restart", Restarts: 7}}})
	s.facts["gpu-1"] = f
	p := patient{sight: s, journals: map[string][]string{"gpu-1": {`level=fatal msg="Node password rejected, duplicate hostname or contents of '/etc/rancher/node/password' may not match server node-passwd entry"`}}}
	found := k3sTrouble(w.machines, p)
	if len(found) != 1 || found[0].Code != "node-password-rejected" || !strings.Contains(found[0].Evidence, "started 7 times again: Node password rejected") {
		t.Errorf("%+v", found)
	}
	p.journals = nil
	if found = k3sTrouble(w.machines, p); len(found) != 1 || found[0].Code != "k3s-crash-loop" {
		t.Errorf("without a log: %+v", found)
	}
	// Whoever stopped it knows; its log is about other days.
	p.journals = map[string][]string{"gpu-1": {`level=error msg="failed to get CA certs: connection refused"`}}
	f.K3s.Value.Units["k3s-agent"] = host.Unit{Active: "inactive", Sub: "dead"}
	if found = k3sTrouble(w.machines, p); len(found) != 1 || found[0].Code != "k3s-stopped" || strings.Contains(found[0].Evidence, "refused") {
		t.Errorf("stopped by hand: %+v", found)
	}
	f.K3s.Value.Units["k3s-agent"] = host.Unit{Active: "active", Sub: "running"}
	if found = k3sTrouble(w.machines, p); len(found) != 0 {
		t.Errorf("a running k3s: %+v", found)
	}
}

func TestHalvesSayWhichIsDead(t *testing.T) {
	w := clusterOf(t, "server", "gpu-1")
	lost := errors.New("refused")
	for want, s := range map[string]sight{
		"whole":   {},
		"partial": {unreached: map[string]error{"gpu-1": lost}},
		"dead":    {unreached: map[string]error{"gpu-1": lost, "server": lost}},
	} {
		if h := halves(w.machines, s, nil); h[0].State != want || h[1].State != "whole" {
			t.Errorf("%+v, want %s", h, want)
		}
	}
	if h := halves(w.machines, sight{}, lost); h[1].State != "dead" || h[1].Why[0] != "refused" {
		t.Errorf("%+v", h)
	}
}
