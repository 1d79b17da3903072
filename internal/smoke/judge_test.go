package smoke

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

const (
	uuidA = "GPU-11111111-1111-1111-1111-111111111111"
	uuidB = "GPU-22222222-2222-2222-2222-222222222222"
	uuidX = "GPU-99999999-9999-9999-9999-999999999999"
	migA  = "MIG-33333333-3333-3333-3333-333333333333"
)

func host(uuids ...string) []GPU {
	var all []GPU
	for _, u := range uuids {
		all = append(all, GPU{UUID: u, Name: "NVIDIA H100"})
	}
	return all
}

// printed is what the script prints in a pod with these GPUs, all well.
func printed(mark string, uuids ...string) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, prefix+mark+" "+format+"\n", args...) }
	b.WriteString("some banner of the image\n")
	line("begin")
	for i := range uuids {
		line("device /dev/nvidia%d", i)
	}
	line("program /cuda-samples/vectorAdd")
	line("smi 0")
	for i, u := range uuids {
		line("list GPU %d: NVIDIA H100 (UUID: %s)", i, u)
	}
	for _, u := range uuids {
		line("run %s 0 yes", u)
		line("out %s Test PASSED", u)
	}
	line("end")
	return b.String()
}

func codes(fs []Finding) []string {
	all := []string{}
	for _, f := range fs {
		all = append(all, f.Code)
	}
	return all
}

func TestJudge(t *testing.T) {
	good := printed("m", uuidA, uuidB)
	swap := func(old, new string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("the log has no %q", old)
		}
		return strings.ReplaceAll(good, old, new)
	}
	tests := []struct {
		name    string
		host    []GPU
		granted int
		log     string
		smi     Status
		compute Status
		gpus    []Status
		codes   []string
	}{
		{"both pass", host(uuidA, uuidB), 2, good, Passed, Passed, []Status{Passed, Passed}, nil},
		{"one is in use, not passed", host(uuidA, uuidB), 1, printed("m", uuidB), Passed, Passed, []Status{Passed, InUse}, nil},
		{"the machine could not be asked", nil, 2, good, Passed, Unverified, []Status{Passed, Passed}, nil},
		{"lies: a stranger's GPU", host(uuidA, uuidB), 2, printed("m", uuidA, uuidX), Passed, Failed, []Status{Passed, Failed, Failed}, []string{CodeForeignUUID}},
		{"lies: one twice", host(uuidA, uuidB), 2, printed("m", uuidA, uuidA), Passed, Failed, []Status{Failed, Failed}, []string{CodeDuplicateUUID, CodeCompute}},
		{"lies: fewer than given", host(uuidA, uuidB), 2, printed("m", uuidA), Passed, Failed, []Status{Passed, Failed}, []string{CodeUUIDCount}},
		{"more than given", host(uuidA, uuidB), 1, good, Passed, Failed, []Status{Passed, Passed}, []string{CodeUUIDCount}},
		{"more than the container has", host(uuidA, uuidB), 2, swap(prefix+"m device /dev/nvidia1\n", ""), Passed, Failed, []Status{Passed, Passed}, []string{CodeDeviceNodes}},
		{"compute fails on one", host(uuidA, uuidB), 2, swap("run "+uuidB+" 0 yes", "run "+uuidB+" 1 no"), Passed, Failed, []Status{Passed, Failed}, []string{CodeCompute}},
		{"exit 0 without PASSED", host(uuidA, uuidB), 2, swap("run "+uuidB+" 0 yes", "run "+uuidB+" 0 no"), Passed, Failed, []Status{Passed, Failed}, []string{CodeCompute}},
		{"PASSED with exit 1", host(uuidA, uuidB), 2, swap("run "+uuidB+" 0 yes", "run "+uuidB+" 1 yes"), Passed, Failed, []Status{Passed, Failed}, []string{CodeCompute}},
		{"compute left out one", host(uuidA, uuidB), 2, swap(prefix+"m run "+uuidB+" 0 yes\n", ""), Passed, Failed, []Status{Passed, Failed}, []string{CodeCompute}},
		{"image too old for the card", host(uuidA, uuidB), 2, swap("run "+uuidB+" 0 yes\n"+prefix+"m out "+uuidB+" Test PASSED",
			"run "+uuidB+" 1 no\n"+prefix+"m out "+uuidB+" error code no kernel image is available for execution on the device"),
			Passed, Failed, []Status{Passed, Failed}, []string{CodeImageTooOld}},
		{"nvidia-smi fails", host(uuidA), 1, prefix + "m begin\n" + prefix + "m smi 9\n" + prefix + "m list NVIDIA-SMI has failed\n" + prefix + "m end\n",
			Failed, Skipped, []Status{Failed}, []string{CodeSMI}},
		{"cut off", host(uuidA, uuidB), 2, swap(prefix+"m end\n", ""), Passed, Failed, []Status{Passed, Passed}, []string{CodeLogCut}},
		{"another run's log", host(uuidA), 1, printed("old", uuidA), Failed, Skipped, []Status{Failed}, []string{CodeLogCut}},
		{"only says PASSED", host(uuidA), 1, "Test PASSED\nDone\n", Failed, Skipped, []Status{Failed}, []string{CodeLogCut}},
		{"no program", host(uuidA, uuidB), 2, strings.NewReplacer("program /cuda-samples/vectorAdd", "program none",
			prefix+"m run "+uuidA+" 0 yes\n", "", prefix+"m run "+uuidB+" 0 yes\n", "").Replace(good), Passed, Failed, []Status{Failed, Failed}, []string{CodeProgram}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := Judge(tt.host, tt.granted, ParseLog(tt.log, "m"))
			var gpus []Status
			for _, g := range r.GPUs {
				gpus = append(gpus, g.Status)
			}
			if r.SMI != tt.smi || r.Compute != tt.compute || !reflect.DeepEqual(gpus, tt.gpus) {
				t.Errorf("smi %s, compute %s, gpus %v; want %s, %s, %v", r.SMI, r.Compute, gpus, tt.smi, tt.compute, tt.gpus)
			}
			if got := codes(r.Findings); !reflect.DeepEqual(got, append([]string{}, tt.codes...)) {
				t.Errorf("findings %v, want codes %v", r.Findings, tt.codes)
			}
		})
	}
}

// The texts are those of real threads: nvidia-container-toolkit#152 (PETRIC2#27), k8s-device-plugin#929.
func TestClassify(t *testing.T) {
	for text, want := range map[string]string{
		"nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.8, please update your driver":                    CodeImageTooNew,
		"UnexpectedAdmissionError: invalid request: maximum request size for shared resources is 1; found 10, which is unexpected": CodeSharedRequest,
		"UnexpectedAdmissionError: Allocate failed due to requested number of devices unavailable for nvidia.com/gpu":              CodeAdmission,
		"Unschedulable: 0/2 nodes are available: 2 Insufficient nvidia.com/gpu.":                                                   CodeUnschedulable,
		"container smoke: ImagePullBackOff: Back-off pulling image":                                                                CodeImagePull,
		"FailedCreatePodSandBox: unable to get OCI runtime for sandbox: no runtime for \"nvidia\" is configured":                   CodeContainer,
		"Failed to allocate device vector A (error code CUDA driver version is insufficient for CUDA runtime version)!":            CodeImageTooNew,
		"everything is fine": "",
	} {
		if got := Classify(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

func TestCount(t *testing.T) {
	tests := []struct {
		name string
		node Node
		want Status
	}{
		{"equal", Node{Host: host(uuidA, uuidB), PCI: 2, Allocatable: 2}, Passed},
		{"a card without driver", Node{Host: host(uuidA), PCI: 2, Allocatable: 1}, Failed},
		{"a GPU the plugin dropped", Node{Host: host(uuidA, uuidB), PCI: 2, Allocatable: 1}, Failed},
		{"two cards at ten units are two GPUs", Node{Host: host(uuidA, uuidB), PCI: 2, Allocatable: 20, Units: 10}, Passed},
		{"slices are not cards", Node{Host: host(migA, "MIG-4"), PCI: 1, Allocatable: 2}, Passed},
		{"no bus", Node{Host: host(uuidA), PCI: Unknown, Allocatable: 1}, Unverified},
		{"machine unreachable", Node{PCI: Unknown, Allocatable: 1}, Unverified},
		{"known by the cluster alone", Node{Host: host(uuidA), PCI: Unknown, Remote: true, Allocatable: 1}, Passed},
		{"and nobody lists its GPUs", Node{PCI: Unknown, Remote: true, Allocatable: 1}, Unverified},
		{"nothing offered", Node{PCI: Unknown}, Failed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, f := Count(tt.node); got != tt.want || (got == Failed) != (f != nil) {
				t.Errorf("got %s (%v), want %s", got, f, tt.want)
			}
		})
	}
}

func TestTooOld(t *testing.T) {
	for _, tt := range []struct {
		driver, floor string
		want          bool
	}{
		{"525.60.13", "525.60.13", false}, {"525.60", "525.60.13", true}, {"470.82.01", "525.60.13", true},
		{"595.91.07", "525.60.13", false}, {"", "525.60.13", false}, {"470.82.01", "", false}, {"weird", "1", false},
	} {
		if got := tooOld(tt.driver, tt.floor); got != tt.want {
			t.Errorf("driver %q below %q: %v", tt.driver, tt.floor, got)
		}
	}
}

// The script and the parser belong together: what the one prints in a container
// (here a folder of stand-ins, synthetic) the other reads.
func TestScript(t *testing.T) {
	dir := t.TempDir()
	program := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
		return file
	}
	run := func(programs ...string) Log {
		t.Helper()
		cmd := exec.Command("sh", append([]string{"-c", script, "sh", "mark"}, programs...)...)
		cmd.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return ParseLog(string(out), "mark")
	}
	adder := program("add", `if [ "$CUDA_VISIBLE_DEVICES" = `+uuidB+` ]; then printf '%s\n' 'bad 100% \n'; exit 1; fi; echo "Test PASSED"`)

	log := run("/nowhere", adder)
	if log.SMI != 127 || !log.Ended || log.Program != adder || len(log.Runs) != 0 {
		t.Errorf("without nvidia-smi: %+v", log)
	}
	program("nvidia-smi", `printf 'GPU 0: NVIDIA H100 80GB HBM3 (UUID: `+uuidA+`)\nGPU 1: NVIDIA H100 80GB HBM3 (UUID: `+uuidB+`)\nGPU 2: x (UUID: GPU-a;rm -rf)\n'`)
	log = run("/nowhere", adder)
	want := []GPU{{UUID: uuidA, Name: "NVIDIA H100 80GB HBM3"}, {UUID: uuidB, Name: "NVIDIA H100 80GB HBM3"}}
	if log.SMI != 0 || !log.Ended || !reflect.DeepEqual(log.GPUs, want) || len(log.Runs) != 2 {
		t.Fatalf("got %+v", log)
	}
	if !log.Runs[0].Passed || log.Runs[1].Passed || log.Runs[1].Code != 1 || log.Runs[1].Output[0] != `bad 100% \n` {
		t.Errorf("runs %+v", log.Runs)
	}
	program("nvidia-smi", `printf 'GPU 0: NVIDIA A100 (UUID: `+uuidA+`)\n  MIG 1g.10gb     Device  0: (UUID: `+migA+`)\n'`)
	log = run(adder)
	if len(log.Slices) != 1 || log.Slices[0].UUID != migA || len(log.Runs) != 1 || log.Runs[0].UUID != migA {
		t.Errorf("a slice: %+v", log)
	}
}

func FuzzParseLog(f *testing.F) {
	f.Add(printed("m", uuidA, uuidB), "m")
	f.Add(prefix+"m run x\n"+prefix+"m out  \n"+prefix+"m smi -1\n"+prefix+"m list (UUID: ", "m")
	f.Add("", "")
	f.Fuzz(func(t *testing.T, text, mark string) {
		log := ParseLog(text, mark)
		if log.Ended && !log.Begun {
			t.Error("ended without a begin")
		}
		r := Judge(host(uuidA), 1, log)
		if r.Compute == Passed && !(strings.Contains(text, uuidA) && log.Ended && len(log.Runs) == 1) {
			t.Errorf("passed by %q", text)
		}
	})
}
