package provision

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"sort"
	"strings"

	"github.com/hashicorp/terraform-exec/tfexec"
)

// Terraform reads one output of a root module that has been applied. It runs
// "terraform output -json", or tofu where there is no terraform, and changes nothing.
type Terraform struct {
	// Dir is the root module.
	Dir string
	// Output is the output's name.
	Output string
}

// Find reads the output and the machines in it. Values of other outputs, which
// may be secret, are neither kept nor printed.
func (t Terraform) Find(ctx context.Context) (Found, error) {
	binary, err := lookTerraform()
	if err != nil {
		return Found{}, err
	}
	tf, err := tfexec.NewTerraform(t.Dir, binary)
	if err != nil {
		return Found{}, fmt.Errorf("opening the Terraform directory: %w", err)
	}
	outputs, err := tf.Output(ctx)
	if err != nil {
		return Found{}, fmt.Errorf("reading the outputs of %s: %w", t.Dir, err)
	}
	values := make(map[string]json.RawMessage, len(outputs))
	for name, o := range outputs {
		values[name] = o.Value
	}
	return t.pick(values)
}

func lookTerraform() (string, error) {
	for _, name := range []string{"terraform", "tofu"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("machinesFrom.terraform needs terraform or tofu, and neither is in the PATH")
}

func (t Terraform) pick(values map[string]json.RawMessage) (Found, error) {
	if len(values) == 0 {
		// Terraform prints {} and succeeds in a directory that was never applied.
		return Found{}, fmt.Errorf("%s has no outputs: run terraform apply there, or name another directory", t.Dir)
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
