package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// write lays files below a new directory and returns the main file's path.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "config.yaml")
}

func TestFileArgs(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{"nothing there", nil, nil},
		{"file order is kept", map[string]string{"config.yaml": "token: t\ncluster-init: true\n"},
			[]string{"--token=t", "--cluster-init=true"}},
		{"a later file replaces", map[string]string{
			"config.yaml": "tls-san: [a, b]\n", "config.yaml.d/10.yaml": "tls-san: c\n"}, []string{"--tls-san=c"}},
		{"a plus appends", map[string]string{
			"config.yaml": "tls-san: a\n", "config.yaml.d/10.yaml": "tls-san+: [b, c]\n"},
			[]string{"--tls-san=a", "--tls-san=b", "--tls-san=c"}},
		{"a plus without an earlier key sets", map[string]string{"config.yaml": "tls-san+: a\n"}, []string{"--tls-san=a"}},
		{"drop-ins without a main file, by name, any case, yaml only", map[string]string{
			"config.yaml.d/20-b.YML": "token: b\n", "config.yaml.d/10-a.yaml": "token: a\n", "config.yaml.d/90-c.txt": "{"},
			[]string{"--token=b"}},
		{"one letter", map[string]string{"config.yaml": "t: x\n"}, []string{"-t=x"}},
		{"null is empty", map[string]string{"config.yaml": "token:\n"}, []string{"--token="}},
		{"an unquoted octal number is one", map[string]string{"config.yaml": "write-kubeconfig-mode: 0644\n"},
			[]string{"--write-kubeconfig-mode=420"}},
		{"yes is true", map[string]string{"config.yaml": "debug: yes\n"}, []string{"--debug=true"}},
	} {
		got, err := FileArgs(write(t, c.files))
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %q, %v; want %q", c.name, got, err, c.want)
		}
	}
}

func TestFileArgsRefusesBrokenYAML(t *testing.T) {
	if _, err := FileArgs(write(t, map[string]string{"config.yaml": "a: [\n"})); err == nil {
		t.Error("broken YAML was taken")
	}
}

// parse runs Parse with a file and an environment.
func parse(t *testing.T, command, file string, env map[string]string, args ...string) (*Options, error) {
	t.Helper()
	path := write(t, map[string]string{"config.yaml": file})
	return Parse(command, append([]string{"--config=" + path}, args...), func(name string) string { return env[name] })
}

func TestPrecedence(t *testing.T) {
	env := map[string]string{"K3S_TOKEN": "env", "K3S_KUBECONFIG_MODE": "0640"}
	o, err := parse(t, "server", "token: file\nnode-label: [a=1]\n", env, "--node-label=b=2", "-t", "line")
	if err != nil {
		t.Fatal(err)
	}
	if got := o.String("token"); got != "line" {
		t.Errorf("token = %q, want that of the command line", got)
	}
	if got := o.List("node-label"); !reflect.DeepEqual(got, []string{"a=1", "b=2"}) {
		t.Errorf("node-label = %q, want both", got)
	}
	if got := o.String("write-kubeconfig-mode"); got != "0640" {
		t.Errorf("write-kubeconfig-mode = %q, want that of the environment", got)
	}
	if o, err = parse(t, "server", "token: file\n", env); err != nil || o.String("token") != "file" {
		t.Errorf("token = %q, %v; want that of the file", o.String("token"), err)
	}
	if got := o.First("cluster-cidr"); got != "10.42.0.0/16" {
		t.Errorf("cluster-cidr = %q, want the default", got)
	}
}

func TestUnknownKeys(t *testing.T) {
	o, err := parse(t, "server", "no-such-key: 1\ntoken: x\n", nil)
	if err != nil || !reflect.DeepEqual(o.Skipped, []string{"--no-such-key"}) || o.String("token") != "x" {
		t.Errorf("server: skipped %q, %v; want the unknown key skipped", o.Skipped, err)
	}
	for _, key := range []string{"no-such-key", "tls-san", "cluster-init"} {
		_, err := parse(t, "agent", key+": \"true\"\n", nil)
		if err == nil || err.Error() != "flag provided but not defined: -"+key {
			t.Errorf("agent with %s: %v", key, err)
		}
	}
}

func TestSplit(t *testing.T) {
	o, err := parse(t, "server", "tls-san: \"a,b\"\nkubelet-arg: \"x=1,2\"\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := o.List("tls-san"); len(got) != 2 {
		t.Errorf("tls-san = %q, want it split", got)
	}
	if got := o.List("kubelet-arg"); len(got) != 1 {
		t.Errorf("kubelet-arg = %q, want it whole", got)
	}
}

func TestEmptyBooleanIsAnError(t *testing.T) {
	if _, err := parse(t, "server", "cluster-init:\n", nil); err == nil {
		t.Error("an empty boolean was taken")
	}
}

func TestNodeArgsHidesSecrets(t *testing.T) {
	o := &Options{Args: []string{"server", "--token=secret", "--cluster-init=true", "--agent-token", "other"}}
	want := `["server","--token","********","--cluster-init","true","--agent-token","********"]`
	if got := o.NodeArgs(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := NodeEnv([]string{"K3S_TOKEN=secret", "K3S_URL=https://x", "HOME=/"}); strings.Contains(got, "secret") || strings.Contains(got, "HOME") {
		t.Errorf("environment shows %s", got)
	}
}

func TestExtra(t *testing.T) {
	defaults := map[string]string{"a": "1", "list": "x"}
	for _, c := range []struct {
		user []string
		want string
	}{
		{nil, "--a=1 --list=x"},
		{[]string{"a=2"}, "--a=2 --list=x"},
		{[]string{"--a=2", "b"}, "--a=2 --b=true --list=x"},
		{[]string{"list+=y"}, "--a=1 --list=x,y"},
		{[]string{"list-=y"}, "--a=1 --list=y,x"},
		{[]string{"b=1", "b=2"}, "--a=1 --b=1 --list=x --b=2"},
	} {
		if got := strings.Join(Extra(defaults, c.user), " "); got != c.want {
			t.Errorf("%q: got %s, want %s", c.user, got, c.want)
		}
	}
}

func FuzzMerge(f *testing.F) {
	f.Add("token: x\ntls-san+: [a]\n")
	f.Add("a: {b: c}\n")
	f.Fuzz(func(t *testing.T, text string) {
		merged, err := merge(nil, []byte(text))
		if err != nil && merged != nil {
			t.Error("an error and a result")
		}
	})
}
