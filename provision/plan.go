package provision

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hashicorp/terraform-exec/tfexec"
)

// Change is what a plan does to one resource.
type Change struct {
	Address string `json:"address"`
	// Action is create, update, delete, replace, move, import or forget.
	Action string `json:"action"`
	Reason string `json:"reason,omitempty"`
}

// Summary counts the changes of a plan.
type Summary struct {
	Add    int `json:"add"`
	Change int `json:"change"`
	Remove int `json:"remove"`
	Import int `json:"import,omitempty"`
}

// Planned is a plan that Terraform has saved. Apply does exactly this, or fails
// where the state has changed meanwhile. The file may hold secrets: Close
// removes it.
type Planned struct {
	// Changed is false where there is nothing to do; a change of outputs alone is one.
	Changed bool
	Changes []Change
	Summary Summary
	// Warnings are Terraform's own.
	Warnings []Diagnostic

	t   Terraform
	tf  *tfexec.Terraform
	dir string
	// destroy: the plan takes everything away.
	destroy bool
}

// Plan initialises the root module and plans; with destroy the plan takes
// everything away. The caller closes what it returns. Errors: *BinaryError,
// *RunError with what Terraform found wrong.
func (t Terraform) Plan(ctx context.Context, destroy bool) (p *Planned, err error) {
	tf, err := t.open()
	if err != nil {
		return nil, err
	}
	if err := tf.Init(ctx); err != nil {
		return nil, t.ended(ctx, "init", err, nil)
	}
	dir, err := os.MkdirTemp("", "gpuctl-plan-") // mode 0700
	if err != nil {
		return nil, fmt.Errorf("keeping the plan: %w", err)
	}
	p = &Planned{t: t, tf: tf, dir: dir, destroy: destroy}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	options := []tfexec.PlanOption{tfexec.Out(p.file()), tfexec.Destroy(destroy)}
	if len(t.Variables) > 0 {
		vars, err := p.variables()
		if err != nil {
			return nil, err
		}
		options = append(options, tfexec.VarFile(vars))
	}
	s := &stream{t: t}
	p.Changed, err = tf.PlanJSON(ctx, s, options...)
	if err != nil {
		return nil, t.ended(ctx, "plan", err, s.diagnostics)
	}
	p.Changes, p.Summary, p.Warnings = s.planned, s.summary, s.diagnostics
	return p, nil
}

// variables writes the file of variables, mode 0600.
func (p *Planned) variables() (string, error) {
	data, err := json.Marshal(p.t.Variables)
	if err != nil {
		return "", fmt.Errorf("writing the variables: %w", err)
	}
	path := filepath.Join(p.dir, "gpuctl.tfvars.json")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return "", fmt.Errorf("writing the variables: %w", err)
	}
	return path, nil
}

func (p *Planned) file() string { return filepath.Join(p.dir, "plan") }

// Apply does what was planned and says what it did to the module's resources.
// A cancelled apply lets Terraform finish what it has begun, for a minute.
func (p *Planned) Apply(ctx context.Context) (Summary, error) {
	s := &stream{t: p.t}
	verb := "apply"
	if p.destroy {
		verb = "destroy"
	}
	if err := p.tf.ApplyJSON(ctx, s, tfexec.DirOrPlan(p.file())); err != nil {
		return s.summary, p.t.ended(ctx, verb, err, s.diagnostics)
	}
	return s.summary, nil
}

// Outputs is what an output will be once the plan is applied, as far as that is
// known already; known is false where it is not, or not wholly.
func (p *Planned) Outputs(ctx context.Context) (found Found, known bool, err error) {
	shown, err := p.tf.ShowPlanFile(ctx, p.file())
	if err != nil {
		return Found{}, false, p.t.ended(ctx, "show", err, nil)
	}
	change, ok := shown.OutputChanges[p.t.Output]
	if !ok || change.After == nil {
		return Found{}, false, nil
	}
	if unknown, plain := change.AfterUnknown.(bool); !plain || unknown {
		return Found{}, false, nil
	}
	value, err := json.Marshal(change.After)
	if err != nil {
		return Found{}, false, fmt.Errorf("reading the plan: %w", err)
	}
	found, err = ParseOutput(value)
	return found, err == nil, nil // an output that will list no machine is not known to be right
}

// Close removes the plan from the disk.
func (p *Planned) Close() error { return os.RemoveAll(p.dir) }

// ended is the error of a run; one that was cut short says so.
func (t Terraform) ended(ctx context.Context, verb string, err error, said []Diagnostic) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s %s in %s was cut short: %w", t.name(), verb, t.Dir, context.Cause(ctx))
	}
	return t.failed(verb, err, said)
}
