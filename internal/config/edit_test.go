package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

const blockFile = `# Mein Cluster: bitte nicht löschen
apiVersion: gpuctl.dev/v1alpha1
kind: Cluster
metadata: {name: lab}
spec:
  # where the machines are
  machines:
    # the head
    - name: head   # über alles
      role: server
      host: 203.0.113.10

    # rented until Friday
    - name: gpu-1
      host: "203.0.113.11"  # rack 7
      gpus: 8
      # a note inside
    - {name: gpu-2, host: b.example.com, user: ubuntu}
  sources: {charts: "http://mirror/charts"}
`

const flowFile = `apiVersion: gpuctl.dev/v1alpha1
kind: Cluster
metadata: {name: lab}
spec: {machines: [{name: head, role: server, host: 203.0.113.10}, {name: gpu-1, host: 203.0.113.11}]}
`

func TestAddMachinesKeepsEveryByte(t *testing.T) {
	eight := 8
	m := []Machine{
		{Name: "gpu-3", Role: "agent", Host: "203.0.113.12", User: "ubuntu", Port: 2222, GPUs: &eight},
		{Name: "gpu-4", Role: "agent", Host: "2001:db8::1"},
	}
	for _, tc := range []struct{ name, file, before, added string }{
		{"after a machine in braces", blockFile, "  sources:",
			"    - {name: gpu-3, role: agent, host: \"203.0.113.12\", user: ubuntu, port: 2222, gpus: 8}\n    - {name: gpu-4, role: agent, host: \"2001:db8::1\"}\n"},
		{"after a block", strings.Replace(blockFile, "    - {name: gpu-2, host: b.example.com, user: ubuntu}\n", "", 1), "  sources:",
			"    - name: gpu-3\n      role: agent\n      host: \"203.0.113.12\"\n      user: ubuntu\n      port: 2222\n      gpus: 8\n    - name: gpu-4\n      role: agent\n      host: \"2001:db8::1\"\n"},
		{"in brackets", flowFile, "]}", ", {name: gpu-3, role: agent, host: \"203.0.113.12\", user: ubuntu, port: 2222, gpus: 8}, {name: gpu-4, role: agent, host: \"2001:db8::1\"}"},
		{"at the end without a line break", strings.TrimSuffix(blockFile, "  sources: {charts: \"http://mirror/charts\"}\n"), "", ""},
		{"with the line breaks of Windows", strings.ReplaceAll(blockFile, "\n", "\r\n"), "  sources:",
			"    - {name: gpu-3, role: agent, host: \"203.0.113.12\", user: ubuntu, port: 2222, gpus: 8}\r\n    - {name: gpu-4, role: agent, host: \"2001:db8::1\"}\r\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := AddMachines([]byte(tc.file), "gpuctl.yaml", m...)
			if err != nil {
				t.Fatal(err)
			}
			want := strings.Replace(tc.file, tc.before, tc.added+tc.before, 1)
			if tc.before == "" {
				want = tc.file + "    - {name: gpu-3, role: agent, host: \"203.0.113.12\", user: ubuntu, port: 2222, gpus: 8}\n    - {name: gpu-4, role: agent, host: \"2001:db8::1\"}\n"
			}
			if string(got) != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
			again, err := AddMachines(got, "gpuctl.yaml", m...)
			if err != nil || string(again) != string(got) {
				t.Errorf("adding the same again: %v\n%s", err, again)
			}
			back, err := RemoveMachines(got, "gpuctl.yaml", "gpu-3", "gpu-4", "never-there")
			if err != nil || string(back) != tc.file {
				t.Errorf("adding and removing is not nothing: %v\n%s", err, back)
			}
		})
	}
}

func TestAddToTheFileThatBootstrapWrites(t *testing.T) {
	data, err := FromHosts([]string{"ubuntu@203.0.113.10", "ubuntu@203.0.113.11:2222"}, HostOptions{Set: "26.7"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := AddMachines(data, "gpuctl.yaml", Machine{Name: "node-3", Role: "agent", Host: "203.0.113.12"})
	if err != nil {
		t.Fatal(err)
	}
	want := string(data) + "    - name: node-3\n      role: agent\n      host: \"203.0.113.12\"\n"
	if string(got) != want {
		t.Errorf("got:\n%s", got)
	}
}

func TestAddRefusesWhatTheRulesRefuse(t *testing.T) {
	for name, m := range map[string]Machine{
		"a name that is taken":  {Name: "gpu-1", Role: "agent", Host: "203.0.113.99"},
		"a machine given twice": {Name: "other", Role: "agent", Host: "203.0.113.11"},
		"no such group":         {Name: "gpu-9", Role: "agent", Host: "203.0.113.99", Group: "nowhere"},
		"a host with an option": {Name: "gpu-9", Role: "agent", Host: "-oProxyCommand=x"},
		"an unknown role":       {Name: "gpu-9", Role: "boss", Host: "203.0.113.99"},
	} {
		var invalid *InvalidError
		if _, err := AddMachines([]byte(blockFile), "gpuctl.yaml", m); !errors.As(err, &invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	tf := "apiVersion: gpuctl.dev/v1alpha1\nkind: Cluster\nmetadata: {name: a}\nspec: {machinesFrom: {terraform: {dir: .}}}\n"
	if _, err := AddMachines([]byte(tf), "f", Machine{Name: "a", Role: "agent", Host: "h"}); !errors.Is(err, ErrMachinesElsewhere) {
		t.Errorf("machines of Terraform: %v", err)
	}
}

func TestRemoveMachinesKeepsTheRest(t *testing.T) {
	got, err := RemoveMachines([]byte(blockFile), "gpuctl.yaml", "gpu-1")
	if err != nil {
		t.Fatal(err)
	}
	cut := "    - name: gpu-1\n      host: \"203.0.113.11\"  # rack 7\n      gpus: 8\n      # a note inside\n"
	if want := strings.Replace(blockFile, cut, "", 1); string(got) != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	got, err = RemoveMachines([]byte(flowFile), "gpuctl.yaml", "gpu-1")
	if want := strings.Replace(flowFile, ", {name: gpu-1, host: 203.0.113.11}", "", 1); err != nil || string(got) != want {
		t.Errorf("%v:\n%s", err, got)
	}
	if _, err = RemoveMachines([]byte(blockFile), "gpuctl.yaml", "head"); err == nil {
		t.Error("a cluster without its server is accepted")
	}
}

func TestSetAddress(t *testing.T) {
	for _, tc := range []struct{ file, machine, target, old, new string }{
		{blockFile, "gpu-1", "198.51.100.7", `host: "203.0.113.11"  # rack 7`, `host: "198.51.100.7"  # rack 7`},
		{blockFile, "gpu-1", "root@c.example.com:2222", `host: "203.0.113.11"  # rack 7` + "\n", `host: c.example.com  # rack 7` + "\n      user: root\n      port: 2222\n"},
		{blockFile, "gpu-2", "ops@c.example.com:23", `{name: gpu-2, host: b.example.com, user: ubuntu}`, `{name: gpu-2, host: c.example.com, port: 23, user: ops}`},
		{flowFile, "gpu-1", "root@c.example.com", `host: 203.0.113.11}`, `host: c.example.com, user: root}`},
	} {
		target, err := ParseTarget(tc.target)
		if err != nil {
			t.Fatal(err)
		}
		got, err := SetAddress([]byte(tc.file), "gpuctl.yaml", tc.machine, target)
		if want := strings.Replace(tc.file, tc.old, tc.new, 1); err != nil || string(got) != want {
			t.Errorf("%s: %v\ngot:\n%s\nwant:\n%s", tc.target, err, got, want)
		}
	}
	if _, err := SetAddress([]byte(blockFile), "gpuctl.yaml", "nobody", Target{Host: "h"}); err == nil {
		t.Error("a machine that is not there is accepted")
	}
	same, err := SetAddress([]byte(blockFile), "gpuctl.yaml", "gpu-2", Target{Host: "b.example.com"})
	if err != nil || string(same) != blockFile {
		t.Errorf("the same address: %v\n%s", err, same)
	}
}

func TestNewMachinesTakeFreeNames(t *testing.T) {
	c, err := Parse([]byte(strings.Replace(blockFile, "gpu-2", "node-4", 1)), "gpuctl.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.NewMachines([]string{"ubuntu@203.0.113.20", "gpu-1.example.com", "203.0.113.21", "203.0.113.11"}, Machine{Group: "h100"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range got {
		names = append(names, m.Name)
		if m.Role != "agent" || m.Group != "h100" {
			t.Errorf("%+v", m)
		}
	}
	if want := []string{"node-5", "gpu-1.example.com", "node-6", "gpu-1"}; !reflect.DeepEqual(names, want) {
		t.Errorf("names %v, want %v", names, want)
	}
	if _, err := c.NewMachines([]string{"a", "b"}, Machine{Name: "one"}); err == nil {
		t.Error("one name for two machines is accepted")
	}
	if _, err := c.NewMachines([]string{"http://a"}, Machine{}); err == nil {
		t.Error("a URL is accepted")
	}
}

func TestRewriteIsAtomicAndKeepsTheMode(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "real.yaml"), filepath.Join(dir, "gpuctl.yaml")
	if err := errors.Join(os.WriteFile(file, []byte("old"), 0o640), os.Symlink("real.yaml", link)); err != nil {
		t.Fatal(err)
	}
	boom := errors.New("no")
	if changed, err := Rewrite(link, func([]byte) ([]byte, error) { return nil, boom }); changed || !errors.Is(err, boom) {
		t.Errorf("%v %v", changed, err)
	}
	if changed, err := Rewrite(link, func(d []byte) ([]byte, error) { return d, nil }); changed || err != nil {
		t.Errorf("nothing to change: %v %v", changed, err)
	}
	if changed, err := Rewrite(link, func(d []byte) ([]byte, error) { return append(d, "er"...), nil }); !changed || err != nil {
		t.Errorf("%v %v", changed, err)
	}
	data, err := os.ReadFile(file)
	info, _ := os.Stat(file)
	entries, _ := os.ReadDir(dir)
	if err != nil || string(data) != "older" || info.Mode().Perm() != 0o640 || len(entries) != 2 {
		t.Errorf("%v: %q %v, %d files", err, data, info.Mode(), len(entries))
	}
}

// FuzzEdit: whatever a file looks like, an edit that succeeds says what was
// wanted, and taking it back gives a file that says what it said before.
func FuzzEdit(f *testing.F) {
	f.Add([]byte(blockFile))
	f.Add([]byte(flowFile))
	f.Add([]byte(strings.ReplaceAll(blockFile, "\n", "\r\n")))
	f.Fuzz(func(t *testing.T, data []byte) {
		before, err := Parse(data, "f")
		if err != nil {
			return
		}
		added, err := AddMachines(data, "f", Machine{Name: "fuzz-new", Role: "agent", Host: "fuzz.example.com"})
		if err != nil {
			return
		}
		back, err := RemoveMachines(added, "f", "fuzz-new")
		if err != nil {
			t.Fatalf("cannot take back: %v\n%s", err, added)
		}
		after, err := Parse(back, "f")
		if err != nil || !reflect.DeepEqual(before, after) {
			t.Errorf("%v\n%q\n%q", err, data, back)
		}
	})
}
