//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/sshconn/sshtest"
	"github.com/gpuctl/gpuctl/internal/bench"
	"github.com/gpuctl/gpuctl/internal/diag"
	"github.com/gpuctl/gpuctl/internal/ui"
)

// badInput is one thing that a user gives gpuctl and that cannot become a cluster.
type badInput struct {
	// machine changes what a healthy, synthetic machine answers; config changes gpuctl.yaml.
	machine func(answer string) string
	config  func(yaml string) string
	// code is the finding that stops it, "" where the file itself is wrong; exit is the exit code.
	code string
	exit int
	// says is a part of what the user reads.
	says string
}

// onTheMachine is what a look at machines finds, each with the real engine over
// SSH; what is wrong on the way there is in TestBadInputOnTheWay, what shows
// only later in TestEveryBadInputHasItsTest.
func onTheMachine() map[string]badInput {
	promise := func(gpus int) func(string) string {
		return func(yaml string) string {
			return strings.Replace(yaml, "role: server\n", fmt.Sprintf("role: server\n    gpus: %d\n", gpus), 1)
		}
	}
	return map[string]badInput{
		"no GPU where one was promised": {section("pci", ""), promise(2), "gpu-none", exitFindings, "2 promised, none on the PCI bus"},
		"fewer than promised":           {nil, promise(8), "gpu-fewer", exitFindings, "8"},
		"disk too small": {both(fresh, section("disks", "df|/|/dev/vda1|/|8388608|2097152|ext4\ndf|/var/lib|/dev/vda1|/|8388608|2097152|ext4\ndf|/var/lib/rancher/k3s|/dev/vda1|/|8388608|2097152|ext4")),
			nil, "disk-too-small", exitFindings, "2.0 GiB free"},
		"foreign Kubernetes": {both(fresh, section("others", "trace|microk8s|/var/snap/microk8s\nprocess|kubelite|2101")), nil, "foreign-kubernetes", exitFindings, "microk8s"},
		"ports taken":        {both(fresh, section("ports", `tcp LISTEN 0 4096 *:6443 *:* users:(("haproxy",pid=77,fd=5))`)), nil, "port-in-use", exitFindings, "6443 by haproxy"},
		"clock off by minutes": {func(answer string) string {
			return regexp.MustCompile(`clock ([0-9]{19})`).ReplaceAllStringFunc(answer, func(text string) string {
				var at int64
				_, _ = fmt.Sscanf(text, "clock %d", &at)
				return fmt.Sprintf("clock %d", at-300*1e9)
			})
		}, nil, "clock-wrong", exitFindings, "behind this computer's clock"},
		"unsupported OS":            {section("os", "PRETTY_NAME=\"Alpine Linux v3.22\"\nNAME=\"Alpine Linux\"\nID=alpine\nVERSION_ID=3.22.1"), nil, "os-unsupported", exitFindings, "Alpine Linux v3.22"},
		"AMD GPU, nothing promised": {section("pci", "0000:c1:00.0 0x1002 0x74a1 0x120000 amdgpu"), nil, "gpu-other-vendor", exitFindings, "AMD Instinct MI300X"},
		"AMD GPU":                   {section("pci", "0000:c1:00.0 0x1002 0x74a1 0x120000 amdgpu"), promise(8), "gpu-other-vendor", exitFindings, "AMD Instinct MI300X"},
		"duplicate name":            {nil, func(yaml string) string { return yaml + second("gpu-0000", "127.0.0.2") }, "", exitUsage, `gpu-0000`},
		"duplicate host": {nil, func(yaml string) string {
			return yaml + strings.Replace(second("gpu-0001", "127.0.0.1"), "role", "port: "+portOf(yaml)+"\n    role", 1)
		}, "", exitUsage, "127.0.0.1"},
		"names Kubernetes rejects": {nil, func(yaml string) string { return strings.Replace(yaml, "name: gpu-0000", "name: GPU_Node-1", 1) }, "", exitUsage, `"gpu-node-1" can`},
	}
}

// section replaces the content of a section of the probe's answer.
func section(name, content string) func(string) string {
	return func(answer string) string {
		found := regexp.MustCompile(`(?s)\n(\S+) begin ` + name + `\n.*?\n(\S+) end ` + name + ` ok`)
		return found.ReplaceAllStringFunc(answer, func(old string) string {
			mark := strings.Fields(old)[0]
			return "\n" + mark + " begin " + name + "\n" + content + "\n" + mark + " end " + name + " ok"
		})
	}
}

// fresh takes k3s, and gpuctl's files, from a machine.
func fresh(answer string) string {
	for _, name := range []string{"k3s", "files"} {
		answer = section(name, "")(answer)
	}
	answer = section("ports", `tcp LISTEN 0 128 0.0.0.0:22 0.0.0.0:* users:(("sshd",pid=101,fd=3))`)(answer)
	return strings.Replace(answer, " end k3s ok", " end k3s absent", 1)
}

func both(first, then func(string) string) func(string) string {
	return func(answer string) string { return then(first(answer)) }
}

func second(name, host string) string {
	return "  - name: " + name + "\n    role: agent\n    host: " + host + "\n"
}

func portOf(yaml string) string {
	return regexp.MustCompile(`port: ([0-9]+)`).FindStringSubmatch(yaml)[1]
}

// runReal runs a command line with the real engine in a directory of its own.
func runReal(t *testing.T, yaml string, args ...string) outcome {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "gpuctl.yaml")
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	t.Setenv("HOME", dir)
	t.Setenv("SSH_AUTH_SOCK", "")
	var out, errOut bytes.Buffer
	code := run(append([]string{"-f", file}, args...), app{
		in: strings.NewReader(""), out: &out, err: &errOut, newEngine: newEngine,
		size:         func() ui.Size { return ui.Size{Width: 80, Height: 24} },
		readPassword: func(string) (string, error) { return "", errors.New("no terminal") },
	})
	return outcome{code: code, out: out.String(), err: errOut.String(), dir: dir}
}

// farmOf is one machine of a bench, changed, and the gpuctl.yaml for it.
func farmOf(t *testing.T, change func(string) string) (*bench.Farm, string) {
	t.Helper()
	o := bench.FarmOptions{Machines: 1}
	if change != nil {
		o.Change = func(_ int, answer string) string { return change(answer) }
	}
	farm, err := bench.StartFarm(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := farm.Close(); err != nil {
			t.Error(err)
		}
	})
	return farm, bench.Configuration(farm.Ports, sshtest.KeyFile(t, t.TempDir(), "id", sshtest.NewPrivate(t), ""))
}

func TestBadInputOnTheMachine(t *testing.T) {
	for name, c := range onTheMachine() {
		t.Run(name, func(t *testing.T) {
			farm, yaml := farmOf(t, c.machine)
			if c.config != nil {
				yaml = c.config(yaml)
			}
			got := runReal(t, yaml, "apply", "--yes", "--no-pairs", "-o", "json")
			if got.code != c.exit {
				t.Errorf("exit code %d, want %d: %s", got.code, c.exit, got.err)
			}
			if !strings.Contains(got.out+got.err, c.says) {
				t.Errorf("no word of %q:\n%s%s", c.says, got.out, got.err)
			}
			if n := farm.Counts().Deeds; n > 0 {
				t.Errorf("%d commands that change something were sent", n)
			}
			if c.code != "" {
				stopsWith(t, got.out, c.code)
			}
		})
	}
	t.Run("nothing is wrong", func(t *testing.T) {
		_, yaml := farmOf(t, nil)
		if got := runReal(t, yaml, "check", "--no-pairs"); got.code != exitOK || !strings.Contains(got.out, "Nothing speaks against it") {
			t.Errorf("%d %s%s", got.code, got.out, got.err)
		}
	})
}

// stopsWith wants one blocking finding, of this code.
func stopsWith(t *testing.T, out, code string) {
	t.Helper()
	var r struct{ Findings []diag.Finding }
	if err := json.NewDecoder(strings.NewReader(out)).Decode(&r); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var blocking []string
	for _, f := range r.Findings {
		if f.Severity == diag.Blocks {
			blocking = append(blocking, string(f.Code))
		}
	}
	if strings.Join(blocking, " ") != code {
		t.Errorf("stopped by %q, want %s alone", blocking, code)
	}
}
