package provision

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/internal/inventory"
)

// output is the value of one output in a recorded "terraform output -json".
func output(t *testing.T, file, name string) json.RawMessage {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]struct{ Value json.RawMessage }
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	return all[name].Value
}

// ansible-collections/cloud.terraform#142
func TestMapFromNameToAddress(t *testing.T) {
	found, err := ParseOutput(output(t, "map-name-to-address.json", "vm_ips"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range found.Machines {
		got = append(got, m.Name+" "+m.Host+" "+string(m.Role))
	}
	want := "k3s-01-agent-01 192.0.2.144 |k3s-01-agent-02 192.0.2.145 |k3s-01-server-01 192.0.2.143 "
	if strings.Join(got, "|") != want {
		t.Errorf("got %q", got)
	}
}

// Nebius' public_ip_address.address has a mask.
func TestAddressWithMask(t *testing.T) {
	_, err := ParseOutput(output(t, "address-with-mask.json", "nodes"))
	if err == nil || !strings.Contains(err.Error(), "gpu-2: private address: 10.0.0.0/24 is a network") {
		t.Errorf("got %v", err)
	}
	for in, want := range map[string]inventory.Machine{
		"203.0.113.10/32":          {Host: "203.0.113.10"},
		"2001:db8::7/128":          {Host: "2001:db8::7"},
		" 203.0.113.11\n":          {Host: "203.0.113.11"},
		"10.0.0.5/24":              {Host: "10.0.0.5"},
		"ubuntu@203.0.113.13:2222": {Host: "203.0.113.13", User: "ubuntu", Port: 2222},
		"":                         {},
		"null":                     {},
	} {
		var m inventory.Machine
		if err := setHost(&m, in); err != nil || m != want {
			t.Errorf("%q: %+v, %v", in, m, err)
		}
	}
	for _, in := range []string{"https://203.0.113.12", "10.0.0.0/24", "-oProxyCommand=x"} {
		var m inventory.Machine
		if err := setHost(&m, in); err == nil {
			t.Errorf("%q became %+v", in, m)
		}
	}
}

// nbering/terraform-inventory#22
func TestNullsAndNestedObjects(t *testing.T) {
	_, err := ParseOutput(output(t, "null-sensitive-nested.json", "node_pool"))
	if err == nil || !strings.Contains(err.Error(), "np-1: it has no host") || !strings.Contains(err.Error(), "np-2: its state is STATE_SHUTOFF") {
		t.Errorf("got %v", err)
	}
	for _, name := range []string{"empty", "vm_count"} {
		if found, err := ParseOutput(output(t, "null-sensitive-nested.json", name)); err == nil {
			t.Errorf("%s became %+v", name, found)
		}
	}
}

func TestContract(t *testing.T) {
	found, err := ParseOutput(json.RawMessage(`[
		{"name": "a", "role": "server", "host": "203.0.113.10", "user": "ubuntu", "private": "10.0.0.5/24", "gpus": 8, "gpu_model": "H100", "extra": {}},
		{"name": "b", "public_ip": null, "state": "running"}, null, "203.0.113.12"]`))
	if err != nil {
		t.Fatal(err)
	}
	a := found.Machines[0]
	if a.Name != "a" || a.Role != inventory.Server || a.PrivateAddress != "10.0.0.5" || *a.GPUs != 8 || a.User != "ubuntu" {
		t.Errorf("got %+v", a)
	}
	if len(found.Machines) != 2 || len(found.Skipped) != 2 || found.Skipped[0].Name != "b" || found.Skipped[1].Name != "entry 3" {
		t.Errorf("got %+v", found)
	}
}

func TestPickNamesWhatThereIs(t *testing.T) {
	tf := Terraform{Dir: "infra", Output: "gpuctl"}
	if _, err := tf.pick(nil); err == nil || !strings.Contains(err.Error(), "terraform apply there") {
		t.Errorf("no outputs: %v", err)
	}
	_, err := tf.pick(map[string]json.RawMessage{"ssh_private_key": json.RawMessage(`"s3cret"`), "ips": nil})
	if err == nil || !strings.Contains(err.Error(), "it has ips, ssh_private_key") || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("another output: %v", err)
	}
}

// The fake answers "version -json" and "output -no-color -json" as Terraform
// 1.11 does and fails on anything else.
func TestFindRunsTerraformOutput(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Log("the fake is a shell script")
		return
	}
	bin, dir := t.TempDir(), t.TempDir()
	data, err := os.ReadFile("testdata/map-name-to-address.json")
	if err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\ncase \"$*\" in\n'version -json') echo '{\"terraform_version\": \"1.11.0\"}';;\n" +
		"'output -no-color -json') cat <<'END'\n" + string(data) + "\nEND\n;;\n*) echo \"unexpected: $*\" >&2; exit 9;;\nesac\n"
	if err := os.WriteFile(filepath.Join(bin, "terraform"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	found, err := Terraform{Dir: dir, Output: "vm_ips"}.Find(context.Background())
	if err != nil || len(found.Machines) != 3 {
		t.Errorf("got %+v, %v", found, err)
	}
}

func TestStatic(t *testing.T) {
	found, err := Static{{Name: "a"}}.Find(context.Background())
	if err != nil || len(found.Machines) != 1 {
		t.Errorf("got %+v, %v", found, err)
	}
}

func FuzzParseOutput(f *testing.F) {
	f.Add([]byte(`{"a": "203.0.113.10"}`))
	f.Add([]byte(`[{"name": "a", "host": "u@h:22"}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		found, err := ParseOutput(data)
		if err != nil {
			return
		}
		for _, m := range found.Machines {
			if m.Host == "" || strings.HasPrefix(m.Host, "-") || strings.ContainsAny(m.Host, " @/;'\"$`\n") {
				t.Errorf("host %q", m.Host)
			}
		}
	})
}
