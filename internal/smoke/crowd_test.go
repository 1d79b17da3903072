package smoke

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func TestCrowdPodGolden(t *testing.T) {
	o := Options{Image: "nvcr.io/nvidia/k8s/cuda-sample:x", Programs: []string{"/cuda-samples/vectorAdd"}}
	n := Node{Name: "gpu-1", Host: host(uuidA), Units: 4, Allocatable: 4, Requested: 1, Resource: "nvidia.com/gpu.shared"}
	for name, pod := range map[string]*corev1.Pod{"pod-beside.yaml": crowdPod(n, o, "0123456789abcdef", 1), "pod-one-more.yaml": oneMore(n, o, "0123456789abcdef", 3)} {
		text, err := yaml.Marshal(pod)
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name, text)
	}
}

func TestSharedNode(t *testing.T) {
	full := "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
	run := []corev1.PodStatus{unplaced("waiting"), pending("", ""), alive()}
	waits := []corev1.PodStatus{{Phase: corev1.PodPending}, unplaced(full)}
	for _, tc := range []struct {
		name  string
		lives [][]corev1.PodStatus
		log   string
		want  Status
		code  string
	}{
		{"four beside each other, the fifth waits", [][]corev1.PodStatus{run, run, run, run, waits}, printed("mark", uuidA), Passed, ""},
		{"the fifth is placed", [][]corev1.PodStatus{run, run, run, run, run}, printed("mark", uuidA), Failed, CodeOneTooMany},
		{"the scheduler is silent", [][]corev1.PodStatus{run, run, run, run, {{Phase: corev1.PodPending}}}, printed("mark", uuidA), Failed, CodeTimeout},
		{"one is refused", [][]corev1.PodStatus{run, run, run, {refused("UnexpectedAdmissionError", "Allocate failed")}}, printed("mark", uuidA), Failed, CodeAdmission},
		{"a GPU of another machine", [][]corev1.PodStatus{run, run, run, run, waits}, printed("mark", uuidB), Failed, CodeForeignUUID},
		{"one ends", [][]corev1.PodStatus{run, run, run, {alive(), succeeded()}, waits}, printed("mark", uuidA), Failed, CodeContainer},
	} {
		b := newBench(t, tc.lives...)
		b.log = tc.log
		n := Node{Name: "gpu-1", Host: host(uuidA), PCI: 1, Allocatable: 4, Units: 4, Driver: "580.95.05"}
		report, err := b.run(t.Context(), []Node{n})
		if err != nil {
			t.Fatal(err)
		}
		r, codes := report.Nodes[0], ""
		for _, f := range r.Findings {
			codes += f.Code + " "
		}
		if r.Status != tc.want || !strings.Contains(codes, tc.code) || tc.code == "" && codes != "" {
			t.Errorf("%s: %s with %q, want %s with %q: %+v", tc.name, r.Status, codes, tc.want, tc.code, r)
		}
	}
}

func TestJudgeCrowd(t *testing.T) {
	logs := func(uuids ...string) []Log {
		var all []Log
		for _, u := range uuids {
			all = append(all, ParseLog(printed("mark", u), "mark"))
		}
		return all
	}
	two := Node{Host: host(uuidA, uuidB), Allocatable: 4, Units: 2}
	for _, tc := range []struct {
		name    string
		logs    []Log
		compute Status
		gpus    string
		found   string
	}{
		{"each twice", logs(uuidA, uuidB, uuidB, uuidA), Passed, "passed passed", ""},
		{"one three times", logs(uuidA, uuidB, uuidA, uuidA), Failed, "passed passed", "smoke-shared-uneven"},
		{"one never", logs(uuidA, uuidA, uuidA, uuidA), Failed, "passed failed", "smoke-shared-uneven"},
		{"others hold some", logs(uuidA, uuidA), Passed, "passed in-use", ""},
	} {
		r := JudgeCrowd(two, tc.logs)
		var gpus []string
		for _, g := range r.GPUs {
			gpus = append(gpus, string(g.Status))
		}
		found := ""
		for _, f := range r.Findings {
			found = f.Code
		}
		if found != tc.found {
			t.Errorf("%s: found %+v, want %q", tc.name, r.Findings, tc.found)
		}
		if r.SMI != Passed || r.Compute != tc.compute || strings.Join(gpus, " ") != tc.gpus {
			t.Errorf("%s: %s, %v; want %s, %s: %+v", tc.name, r.Compute, gpus, tc.compute, tc.gpus, r.Findings)
		}
	}
}
