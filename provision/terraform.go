package provision

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"sort"
	"strings"

	"github.com/hashicorp/terraform-exec/tfexec"

	"github.com/gpuctl/gpuctl/internal/event"
)

// Terraform is a root module of Terraform or OpenTofu: the user's own, or one
// of those that gpuctl writes. Find only reads an output of what was applied;
// Plan, and Apply of a plan, change machines. The state is never read: what
// gpuctl knows of the machines is what the output says.
type Terraform struct {
	// Dir is the root module.
	Dir string
	// Output is the name of the output that lists the machines, see Machine.
	Output string
	// Binary is the program, by path or by its name in the PATH; empty means
	// terraform, or tofu where there is no terraform.
	Binary string
	// Variables are the module's input variables. They travel in a file of mode
	// 0600 that lives as long as the plan is made, never on a command line.
	Variables map[string]any
	// Secrets are values that must not be shown, among them those of variables:
	// a provisioner may print them.
	Secrets []string
	// Sink hears what Terraform does meanwhile; nil means nobody does.
	Sink event.Sink
}

// BinaryError says that there is no Terraform to run.
type BinaryError struct {
	// Tried are the names looked for.
	Tried []string
}

func (e *BinaryError) Error() string {
	return strings.Join(e.Tried, " or ") + " is needed and not in the PATH"
}

// Find reads the output and the machines in it. Values of other outputs, which
// may be secret, are neither kept nor printed. Errors: *BinaryError, *RunError,
// or what is wrong with the output.
func (t Terraform) Find(ctx context.Context) (Found, error) {
	outputs, err := t.outputs(ctx)
	if err != nil {
		return Found{}, err
	}
	values := make(map[string]json.RawMessage, len(outputs))
	var others []Other
	for name, o := range outputs {
		if values[name] = o.Value; name != t.Output {
			others = append(others, Other{name, o.Sensitive})
		}
	}
	found, err := t.pick(values)
	sort.Slice(others, func(i, j int) bool { return others[i].Name < others[j].Name })
	found.Others = others
	return found, err
}

// outputs are all outputs, sensitive ones too.
func (t Terraform) outputs(ctx context.Context) (map[string]tfexec.OutputMeta, error) {
	tf, err := t.open()
	if err != nil {
		return nil, err
	}
	var raw bytes.Buffer
	tf.SetStdout(&raw)
	outputs, err := tf.Output(ctx)
	if err == nil {
		return outputs, nil
	}
	if clean, ok := withoutNoise(raw.Bytes()); ok && ctx.Err() == nil {
		return clean, nil
	}
	return nil, t.failed("output", err, nil)
}

// withoutNoise reads outputs between the lines that a wrapper prints around
// them, as that of the GitHub action setup-terraform does (setup-terraform#20).
func withoutNoise(raw []byte) (map[string]tfexec.OutputMeta, bool) {
	start := bytes.Index(raw, []byte("\n{"))
	if start < 0 {
		return nil, false
	}
	var out map[string]tfexec.OutputMeta
	return out, json.NewDecoder(bytes.NewReader(raw[start+1:])).Decode(&out) == nil
}

// open finds the program and the directory.
func (t Terraform) open() (*tfexec.Terraform, error) {
	binary, err := t.binary()
	if err != nil {
		return nil, err
	}
	tf, err := tfexec.NewTerraform(t.Dir, binary)
	if err != nil {
		return nil, fmt.Errorf("opening the root module: %w", err)
	}
	return tf, nil
}

func (t Terraform) binary() (string, error) {
	names := []string{"terraform", "tofu"}
	if t.Binary != "" {
		names = []string{t.Binary}
	}
	for _, name := range names {
		// A program in the working directory is not meant: exec.ErrDot.
		if path, err := exec.LookPath(name); err == nil || (errors.Is(err, exec.ErrDot) && t.Binary != "") {
			return path, nil
		}
	}
	return "", &BinaryError{names}
}

// name is what the program is called in messages.
func (t Terraform) name() string {
	if path, err := t.binary(); err == nil && strings.Contains(path, "tofu") {
		return "tofu"
	}
	return "terraform"
}

func (t Terraform) pick(values map[string]json.RawMessage) (Found, error) {
	if len(values) == 0 {
		// Terraform prints {} and succeeds in a directory that was never applied.
		return Found{}, fmt.Errorf("%s has no outputs: run gpuctl provision apply, or terraform apply there, or name another directory", t.Dir)
	}
	value, ok := values[t.Output]
	if !ok {
		var names []string
		for name := range values {
			names = append(names, name)
		}
		sort.Strings(names)
		return Found{}, fmt.Errorf("%s has no output %q (a null output is left out); it has %s", t.Dir, t.Output, strings.Join(names, ", "))
	}
	found, err := ParseOutput(value)
	if err != nil {
		return Found{}, fmt.Errorf("output %q of %s: %w", t.Output, t.Dir, err)
	}
	return found, nil
}
