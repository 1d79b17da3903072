package pack

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func some() []Workload {
	return []Workload{
		{Name: "chat", MemoryMiB: 38 * 1024, Compute: 0.5, Replicas: 2},
		{Name: "embed", MemoryMiB: 6 * 1024, Compute: 0.1, Replicas: 8},
		{Name: "rerank", MemoryMiB: 8 * 1024, Compute: 0.25, Replicas: 3},
		{Name: "train", MemoryMiB: 75 * 1024, Compute: 1, Replicas: 1},
	}
}

func TestPlans(t *testing.T) {
	for _, model := range []string{"H100", "A100 40GB", "T4", "L40S"} {
		c, err := Find(model)
		if err != nil {
			t.Fatal(err)
		}
		c.Hourly = 2.5
		data, err := json.MarshalIndent(Plan(some(), c), "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		file := "testdata/" + strings.ReplaceAll(model, " ", "-") + ".json"
		if *update {
			if err := os.WriteFile(file, append(data, '\n'), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil || string(data)+"\n" != string(want) {
			t.Errorf("%s: %v\n%s", file, err, data)
		}
	}
}

// kinds are the numbers of cards by kind, as "exclusive 14, ...".
func kinds(r Result) map[string]int {
	out := map[string]int{}
	for _, k := range r.Kinds {
		out[k.Name] = k.Cards
	}
	return out
}

func TestNumbersThatCanBeCheckedByHand(t *testing.T) {
	h100, _ := Find("H100 80GB")
	for _, tc := range []struct {
		name      string
		workloads []Workload
		want      map[string]int
	}{
		{"seven small ones", []Workload{{"a", 9 * 1024, 0.1, 7}}, map[string]int{"exclusive": 7, "time-slicing": 1, "mps": 1, "mig": 1}},
		{"eight small ones", []Workload{{"a", 9 * 1024, 0.1, 8}}, map[string]int{"exclusive": 8, "time-slicing": 1, "mps": 1, "mig": 2}},
		{"compute counts", []Workload{{"a", 1024, 0.5, 4}}, map[string]int{"exclusive": 4, "time-slicing": 2, "mps": 2, "mig": 4}},
		{"three sevenths of compute", []Workload{{"a", 1024, 0.4, 4}}, map[string]int{"exclusive": 4, "time-slicing": 2, "mps": 2, "mig": 2}},
		{"one that takes all", []Workload{{"a", 70 * 1024, 1, 3}}, map[string]int{"exclusive": 3, "time-slicing": 3, "mps": 3, "mig": 3}},
		{"one that fits nowhere", []Workload{{"a", 90 * 1024, 1, 3}}, map[string]int{"exclusive": 0, "time-slicing": 0, "mps": 0, "mig": 0}},
		// A large and a small one do not share by MPS: shares are equal.
		{"unequal", []Workload{{"a", 60 * 1024, 0.5, 1}, {"b", 10 * 1024, 0.1, 1}}, map[string]int{"exclusive": 2, "time-slicing": 1, "mps": 2, "mig": 2}},
	} {
		got := kinds(Plan(tc.workloads, h100))
		for kind, want := range tc.want {
			if got[kind] != want {
				t.Errorf("%s: %s needs %d cards, want %d", tc.name, kind, got[kind], want)
			}
		}
	}
	t4, _ := Find("Tesla T4")
	if r := Plan(some(), t4); r.Kinds[3].Impossible == "" {
		t.Errorf("a T4 has no MIG: %+v", r.Kinds[3])
	}
}

func TestModelsByTheirNames(t *testing.T) {
	for name, want := range map[string]string{
		"NVIDIA H100 80GB HBM3": "H100 80GB", "NVIDIA H100 PCIe": "H100 80GB", "NVIDIA H100 NVL": "H100 NVL", "NVIDIA-L40S": "L40S", "Tesla T4": "T4",
		"NVIDIA A100-SXM4-80GB": "A100 80GB", "NVIDIA A100-PCIE-40GB": "A100 40GB", "NVIDIA A100 80GB PCIe": "A100 80GB", "a10": "A10",
		"NVIDIA RTX PRO 6000 Blackwell Server Edition": "RTX PRO 6000", "NVIDIA H200": "H200",
	} {
		if c, err := Find(name); err != nil || c.Model != want {
			t.Errorf("%s is %q, %v; want %s", name, c.Model, err, want)
		}
	}
	for name, want := range map[string]string{"A100": "A100 40GB or A100 80GB", "GTX 1080": "is no card that is known"} {
		if _, err := Find(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

func TestFiles(t *testing.T) {
	got, err := Read([]byte("workloads:\n  - {name: a, memory: 6GiB, compute: 25%, replicas: 3}\n  - name: b\n    memory: 512 MiB\n    compute: 0.5\n"), "w.yaml")
	if err != nil || len(got) != 2 || got[0] != (Workload{"a", 6144, 0.25, 3}) || got[1] != (Workload{"b", 512, 0.5, 1}) {
		t.Errorf("%+v, %v", got, err)
	}
	_, err = Read([]byte("workloads:\n  - {name: a, memory: 6, compute: 2, replicas: 0}\n  - {memory: 6GB}\n  - {name: a, memory: 1GiB}\n"), "w.yaml")
	want := `w.yaml:2:23: workloads[0].memory: "6" is no amount of memory: write 6GiB or 6144MiB
w.yaml:2:35: workloads[0].compute: "2" is no share of a card: write 0.25 or 25%
w.yaml:2:48: workloads[0].replicas: 0 is no number of replicas; 1 to 100000 are
w.yaml:3:6: workloads[1]: name is missing
w.yaml:3:14: workloads[1].memory: "6GB" is no amount of memory: write 6GiB or 6144MiB
w.yaml:4:12: workloads[2].name: "a" stands here twice`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	for text, want := range map[string]string{"workload: []": "[1:1] unknown field", "": "workloads is missing", "a: [": "w.yaml: [1:"} {
		if _, err := Read([]byte(text), "w.yaml"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("workloads:\n  - {name: a, memory: 6GiB, compute: 25%, replicas: 3}\n")
	f.Add("workloads: [{name: b, memory: 1MiB}]")
	f.Fuzz(func(t *testing.T, text string) {
		workloads, err := Read([]byte(text), "w.yaml")
		if err != nil {
			if err.Error() == "" {
				t.Error("an empty error")
			}
			return
		}
		for _, w := range workloads {
			if w.Name == "" || w.MemoryMiB < 1 || w.Replicas < 1 || w.Compute < 0 || w.Compute > 1 {
				t.Errorf("%q: %+v", text, w)
			}
		}
	})
}
