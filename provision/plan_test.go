package provision

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/internal/event"
	"github.com/gpuctl/gpuctl/internal/inventory"
)

// read runs what Terraform 1.11.4 printed through a stream, in pieces of an odd
// size, and returns what came of it and what was said meanwhile.
func read(t *testing.T, file string, secrets ...string) (*stream, string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	s := &stream{t: Terraform{Secrets: secrets, Sink: event.SinkFunc(func(e event.Event) {
		said = append(said, fmt.Sprintf("%s %s: %s", e.Kind, e.Action, e.Text))
	})}}
	noise := append([]byte("[command]/opt/terraform-bin plan -json\n╷\n│ Warning\n"), data...)
	for len(noise) > 0 {
		n := min(97, len(noise))
		if _, err := s.Write(noise[:n]); err != nil {
			t.Fatal(err)
		}
		noise = noise[n:]
	}
	return s, strings.Join(said, "\n")
}

func TestStreamOfAPlan(t *testing.T) {
	s, said := read(t, "ui-plan.jsonl")
	if len(s.planned) != 2 || s.planned[0] != (Change{"terraform_data.vm[0]", "create", ""}) || s.summary != (Summary{Add: 2}) || said != "" {
		t.Errorf("%+v %+v %q", s.planned, s.summary, said)
	}
	s, _ = read(t, "ui-shrink.jsonl")
	if len(s.planned) != 1 || s.planned[0] != (Change{"terraform_data.vm[1]", "delete", "the count is smaller"}) || s.summary.Remove != 1 {
		t.Errorf("%+v %+v", s.planned, s.summary)
	}
}

func TestStreamOfAnApplyTellsWhatHappens(t *testing.T) {
	s, said := read(t, "ui-apply.jsonl", "suppressed")
	for _, want := range []string{"action-started terraform_data.vm[0]: create terraform_data.vm[0]", "action-done terraform_data.vm[1]", "output ******** due to"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is missing in:\n%s", want, said)
		}
	}
	if s.summary != (Summary{Add: 2}) {
		t.Errorf("%+v", s.summary)
	}
}

func TestErrorsSayWhatIsWrongAndWhere(t *testing.T) {
	for file, want := range map[string]string{
		"ui-invalid.jsonl": `terraform plan in infra: Unsupported attribute (main.tf:6): This object has no argument, nested block, or exported attribute named "nope".`,
		"ui-failed.jsonl":  `terraform plan in infra: local-exec provisioner error (terraform_data.vm, main.tf:2): Error running command 'echo ******** in this region; exit 7': exit status 7. Output: ******** in this region`,
	} {
		s, said := read(t, file, "no capacity", "in")
		err := s.t.ended(t.Context(), "plan", errors.New("exit status 1"), s.diagnostics)
		err.(*RunError).Dir, err.(*RunError).Program = "infra", "terraform"
		if err.Error() != want {
			t.Errorf("%s: got\n%s", file, err)
		}
		if strings.Contains(said, "no capacity") {
			t.Errorf("%s: a secret in %s", file, said)
		}
	}
	err := Terraform{Dir: "infra"}.failed("init", errors.New("exit status 1\n╷\n│ Error: no network\n╵"), nil)
	if !strings.HasSuffix(err.Error(), "init in infra: exit status 1 Error: no network") {
		t.Error(err)
	}
}

func TestCompare(t *testing.T) {
	before := []inventory.Machine{{Name: "a", Host: "203.0.113.1"}, {Name: "b", Host: "203.0.113.2", HostKey: "old"}, {Name: "c", Host: "203.0.113.3"}}
	after := []inventory.Machine{{Name: "d", Host: "203.0.113.4"}, {Name: "b", Host: "203.0.113.9", HostKey: "new"}, {Name: "c", Host: "203.0.113.3"}}
	var got []string
	for _, d := range Compare(before, after) {
		got = append(got, d.Name+" "+d.Kind+" "+d.Text)
	}
	want := "a gone was at 203.0.113.1|b changed address 203.0.113.9, was 203.0.113.2; another host key|d added at 203.0.113.4"
	if strings.Join(got, "|") != want {
		t.Errorf("got %s", strings.Join(got, "|"))
	}
	if same := Compare(before, before); len(same) != 0 {
		t.Errorf("the same list: %v", same)
	}
}

func TestOutputsBetweenTheLinesOfAWrapper(t *testing.T) {
	out, ok := withoutNoise([]byte("[command]/opt/terraform-bin output -json\n{\"a\": {\"value\": 1}}\n::debug::exitcode: 0\n"))
	if !ok || string(out["a"].Value) != "1" {
		t.Errorf("%v %v", out, ok)
	}
	for _, raw := range []string{"", "{", "no\n{no", "Error: x\n"} {
		if _, ok := withoutNoise([]byte(raw)); ok {
			t.Errorf("%q became outputs", raw)
		}
	}
}

// fakeTerraform puts a program in the PATH that runs body and knows its version.
func fakeTerraform(t *testing.T, body string) Terraform {
	t.Helper()
	bin, dir := t.TempDir(), t.TempDir()
	script := "#!/bin/sh\necho \"$*\" >> argv\ncase \"$1\" in version) echo '{\"terraform_version\": \"1.11.4\"}'; exit;; init) exit;; esac\n" + body
	if err := os.WriteFile(filepath.Join(bin, "terraform"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	return Terraform{Dir: dir, Output: "gpuctl"}
}

func TestSecretsTravelInAFileOfTheirOwn(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Log("the fake is a shell script")
		return
	}
	tf := fakeTerraform(t, `for a; do case $a in -var-file=*) f=${a#-var-file=}; cp "$f" vars; stat -c %a "$f" "${f%/*}" > modes;; esac; done; exit 0`)
	tf.Variables = map[string]any{"api_token": "s3cret-token", "gpus": int64(2)}
	p, err := tf.Plan(t.Context(), false)
	if err != nil || p.Changed {
		t.Fatalf("%v, changed %v", err, p.Changed)
	}
	for file, want := range map[string]string{"vars": `{"api_token":"s3cret-token","gpus":2}`, "modes": "600\n700\n"} {
		if got, err := os.ReadFile(filepath.Join(tf.Dir, file)); err != nil || string(got) != want {
			t.Errorf("%s: %s %v", file, got, err)
		}
	}
	if argv, _ := os.ReadFile(filepath.Join(tf.Dir, "argv")); !bytes.Contains(argv, []byte("-var-file=")) || bytes.Contains(argv, []byte("s3cret")) {
		t.Errorf("command lines:\n%s", argv)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(p.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the plan and its variables stay: %v", err)
	}
}

func TestACancelledApplyLetsTerraformEnd(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Log("the fake is a shell script")
		return
	}
	start := `{"type":"apply_start","hook":{"resource":{"addr":"x.y"},"action":"create"}}`
	tf := fakeTerraform(t, `case "$1" in plan) exit 2;; esac; trap 'echo ended > ended; exit 1' INT; echo '`+start+`'; while :; do sleep 0.05; done`)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var once sync.Once
	tf.Sink = event.SinkFunc(func(event.Event) { once.Do(cancel) })
	p, err := tf.Plan(ctx, false)
	if err != nil || !p.Changed {
		t.Fatalf("%v", err)
	}
	defer func() { _ = p.Close() }()
	if _, err := p.Apply(ctx); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "cut short") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(tf.Dir, "ended")); err != nil {
		t.Errorf("it was not let end: %v", err)
	}
}

func TestWithoutAProgram(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var none *BinaryError
	if _, err := (Terraform{Dir: t.TempDir()}).Find(t.Context()); !errors.As(err, &none) || err.Error() != "terraform or tofu is needed and not in the PATH" {
		t.Errorf("got %v", err)
	}
	if _, err := (Terraform{Dir: t.TempDir(), Binary: "opentofu"}).Plan(t.Context(), false); !errors.As(err, &none) || none.Tried[0] != "opentofu" {
		t.Errorf("got %v", err)
	}
}

func FuzzStream(f *testing.F) {
	f.Add([]byte(`{"type":"planned_change","change":{"resource":{"addr":"a"},"action":"create"}}` + "\n"))
	f.Add([]byte(`{"type":"diagnostic","diagnostic":{"severity":"error","summary":"a","range":{"filename":"/x/m.tf","start":{"line":1}}}}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := &stream{t: Terraform{Secrets: []string{"s3cret"}, Sink: event.SinkFunc(func(e event.Event) {
			if e.Kind == event.ActionProgress && strings.Contains(e.Text, "s3cret") {
				t.Errorf("a secret in %q", e.Text)
			}
		})}}
		if n, err := s.Write(data); n != len(data) || err != nil {
			t.Errorf("wrote %d of %d: %v", n, len(data), err)
		}
		for _, d := range s.diagnostics {
			if strings.Contains(d.Detail+d.Summary, "s3cret") {
				t.Errorf("a secret in %+v", d)
			}
		}
	})
}
