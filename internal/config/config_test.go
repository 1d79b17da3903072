package config

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what the tests see as what they expect")

const minimal = `apiVersion: gpuctl.dev/v1alpha1
kind: Cluster
metadata: {name: lab}
spec:
  machines:
    - {host: 203.0.113.10, user: ubuntu}
`

func TestDefaults(t *testing.T) {
	c, err := Parse([]byte(minimal), "gpuctl.yaml")
	if err != nil {
		t.Fatal(err)
	}
	m := c.Spec.Machines[0]
	if m.Role != "server" || m.Name != "203.0.113.10" {
		t.Errorf("a lone machine is %q named %q, want server named after its host", m.Role, m.Name)
	}
	if c.Spec.Kubernetes.Datastore != "etcd" || c.Spec.SSH.HostKeys != "accept-new" || c.Group("").Driver.Mode != "auto" {
		t.Errorf("defaults missing: %+v", c.Spec)
	}
	if !c.OperatorEnabled() {
		t.Error("the operator is off by default")
	}
}

func TestProblems(t *testing.T) {
	// Each file in testdata/invalid holds its expected error in comments at its end.
	files, err := filepath.Glob("testdata/invalid/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			_, got := Parse(data, "f")
			var invalid *InvalidError
			if !errors.As(got, &invalid) {
				t.Fatalf("got %v, want *InvalidError", got)
			}
			text, want, _ := strings.Cut(string(data), "# ERRORS\n")
			if *update {
				data = []byte(text + "# ERRORS\n# " + strings.ReplaceAll(invalid.Error(), "\n", "\n# ") + "\n")
				if err := os.WriteFile(file, data, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want = strings.ReplaceAll("\n"+strings.TrimRight(want, "\n"), "\n# ", "\n")[1:]
			if invalid.Error() != want {
				t.Errorf("got:\n%s\nwant:\n%s", invalid, want)
			}
		})
	}
}

// Values that look like numbers or booleans stay the text the user wrote
// (nathandines/forge#29, gopasspw/gopass#737).
func TestTextStaysAsWritten(t *testing.T) {
	c, err := Parse([]byte(`apiVersion: gpuctl.dev/v1alpha1
kind: Cluster
metadata: {name: on}
spec:
  set: 26.10
  machines:
    - {name: 08, host: 203.0.113.31, user: 0042, port: "2222", role: server}
    - {name: 12e4, host: 203.0.113.32, user: on}
    - {name: 0x1f, host: 203.0.113.33, user: ~}
    - {name: null-1, host: 203.0.113.34, gpuModel: p#w}
    - name: b
      host: 203.0.113.35
      gpuModel: a #b
`), "f")
	if err != nil {
		t.Fatal(err)
	}
	m := c.Spec.Machines
	got := []string{c.Metadata.Name, c.Spec.Set, m[0].Name, m[0].User, m[1].Name, m[1].User, m[2].Name, m[2].User, m[3].GPUModel, m[4].GPUModel}
	want := []string{"on", "26.10", "08", "0042", "12e4", "on", "0x1f", "", "p#w", "a"}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("got %q, want %q", got, want)
	}
	if m[0].Port != 2222 {
		t.Errorf("port %d, want 2222", m[0].Port)
	}
}

func TestInventoryTakesTheClustersSSH(t *testing.T) {
	c, err := Parse([]byte(`apiVersion: gpuctl.dev/v1alpha1
kind: Cluster
metadata: {name: lab}
spec:
  ssh: {user: ubuntu, port: 2200, jump: "ops@bastion:2022"}
  machines:
    - {name: a, role: server, host: a.example.com}
    - {name: b, host: b.example.com, user: root, port: 22, gpus: 8}
`), "f")
	if err != nil {
		t.Fatal(err)
	}
	inv := c.Inventory()
	a, b := inv.Machines[0], inv.Machines[1]
	if a.User != "ubuntu" || a.Port != 2200 || a.Jump != "ops@bastion:2022" || b.User != "root" || b.Port != 22 {
		t.Errorf("got %+v and %+v", a, b)
	}
	if len(inv.Servers()) != 1 || len(inv.Agents()) != 1 || *b.GPUs != 8 {
		t.Errorf("roles or GPUs wrong: %+v", inv)
	}
}

func TestPathsStartAtTheFile(t *testing.T) {
	dir := t.TempDir()
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	path := filepath.Join(dir, "gpuctl.yaml")
	text := strings.Replace(minimal, "spec:\n", "spec:\n  set: own.yaml\n  ssh: {identityFile: ~/.ssh/id, sudoPassword: {file: keys/sudo}}\n", 1)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	s := c.Spec
	if s.SSH.IdentityFile != filepath.Join(home, ".ssh/id") || s.SSH.SudoPassword.File != filepath.Join(dir, "keys/sudo") || s.Set != filepath.Join(dir, "own.yaml") {
		t.Errorf("got %+v %+v %q", s.SSH, *s.SSH.SudoPassword, s.Set)
	}
}

func TestNodeName(t *testing.T) {
	// k3s-io/k3s#10794, rancher/rke2#7978, canonical/microk8s#1736
	for in, want := range map[string]string{
		"Lab_Node2": "lab-node2", "acme-gpu-server-0_34f0": "acme-gpu-server-0-34f0", "GHost01": "ghost01",
		"gpu-1.": "gpu-1", "-gpu": "gpu", "10.0.0.5": "10.0.0.5", "ip-172-31-16-236.eu.internal": "ip-172-31-16-236.eu.internal",
		"___": "", "a..b": "a.b", strings.Repeat("a", 62) + "-b": strings.Repeat("a", 62),
	} {
		got := NodeName(in)
		if got != want {
			t.Errorf("NodeName(%q) = %q, want %q", in, got, want)
		}
		if got != "" && CheckNodeName(got) != nil {
			t.Errorf("the proposed %q is not valid itself: %v", got, CheckNodeName(got))
		}
	}
	if err := CheckNodeName("Lab_Node2"); err == nil || !strings.Contains(err.Error(), `"lab-node2" can`) {
		t.Errorf("got %v", err)
	}
}

func TestParseTarget(t *testing.T) {
	good := map[string]Target{
		"h":                        {Host: "h"},
		"ubuntu@203.0.113.10":      {User: "ubuntu", Host: "203.0.113.10"},
		"ubuntu@203.0.113.13:2222": {User: "ubuntu", Host: "203.0.113.13", Port: 2222},
		"ssh://root@gpu-a:22/":     {User: "root", Host: "gpu-a", Port: 22},
		"[2001:db8::7]:2200":       {Host: "2001:db8::7", Port: 2200},
		"root@2001:db8::7":         {User: "root", Host: "2001:db8::7"},
		"[fe80::1%eth0]":           {Host: "fe80::1%eth0"},
	}
	for in, want := range good {
		if got, err := ParseTarget(in); err != nil || got != want {
			t.Errorf("ParseTarget(%q) = %+v, %v, want %+v", in, got, err, want)
		}
	}
	for _, in := range []string{"", "-oProxyCommand=x", "u@-h", "-u@h", "h:0", "h:022", "h:70000", "h:", "https://h", "a b", "h;id", "u@h`id`", "$(id)@h", "203.0.113.10/32", "fe80::1%e;id", "[::1"} {
		if got, err := ParseTarget(in); err == nil {
			t.Errorf("ParseTarget(%q) = %+v, want an error", in, got)
		}
	}
}

func TestFromHosts(t *testing.T) {
	out, err := FromHosts([]string{"ubuntu@203.0.113.10", "ubuntu@203.0.113.11:2222", "gpu-a.example.com", "gpu-a.example.org"},
		HostOptions{Jump: "ops@bastion", IdentityFile: "~/.ssh/id", SudoPasswordFile: "/run/sudo"})
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("testdata/fromhosts.golden", out, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/fromhosts.golden")
	if err != nil {
		t.Fatal(err)
	}
	if string(out) != string(want) {
		t.Errorf("got:\n%s", out)
	}
	if _, err := FromHosts([]string{"a", "a"}, HostOptions{}); err == nil {
		t.Error("the same host twice went through")
	}
}

func TestWriteNewNeverOverwrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gpuctl.yaml")
	for _, step := range []struct {
		data string
		want error
	}{{"a", nil}, {"a", nil}, {"b", ErrConfigDiffers}} {
		if err := WriteNew(path, []byte(step.data)); !errors.Is(err, step.want) {
			t.Errorf("writing %q: %v, want %v", step.data, err, step.want)
		}
	}
	if data, _ := os.ReadFile(path); string(data) != "a" {
		t.Errorf("the file now says %q", data)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(minimal))
	files, _ := filepath.Glob("testdata/invalid/*.yaml")
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse(data, "f")
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without a word")
			}
			return
		}
		for _, m := range c.Inventory().Machines {
			if CheckNodeName(m.Name) != nil || m.Host == "" || strings.HasPrefix(m.Host, "-") || strings.ContainsAny(m.Host+m.User, " ;'\"`\n/") {
				t.Errorf("machine %+v went through", m)
			}
		}
	})
}
