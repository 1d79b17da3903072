package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/internal/config"
	"github.com/gpuctl/gpuctl/internal/event"
	"github.com/gpuctl/gpuctl/internal/state"
	"github.com/gpuctl/gpuctl/provision"
)

func newProvision(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "provision",
		Short: "Rent and give back machines with Terraform or OpenTofu",
		Long: `provision runs Terraform or OpenTofu in the root module that
spec.machinesFrom.terraform names, with the variables that stand there. What it
rents shows in an output, which every other command reads: docs/terraform.md has
the form. The state is never read, sensitive values are never shown.

apply and destroy show the plan and ask; --yes agrees.`,
		Example: "  gpuctl provision plan\n  gpuctl provision apply && gpuctl apply\n  gpuctl provision destroy",
		Args:    knownCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newProvisionPlan(a), newProvisionApply(a), newProvisionDestroy(a), newProvisionOutput(a))
	return cmd
}

func newProvisionPlan(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "plan",
		Short:   "Show what provision apply would rent, change and give back",
		Long:    `plan initialises the root module and shows what Terraform would do. It changes nothing.`,
		Example: "  gpuctl provision plan\n  gpuctl provision plan -o json",
		Args:    wants(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withTerraform(cmd.Context(), "provision plan", (*provisioner).plan)
		},
	}
}

func newProvisionApply(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "apply",
		Short: "Rent, change and give back machines as the root module says",
		Long: `apply shows the plan, asks, does it, and says which machines the output lists now
and what changed. The cluster itself is untouched: gpuctl apply comes next. A machine
that the plan gives back is named first: take it out with gpuctl node remove, or its
pods end with it.`,
		Example: "  gpuctl provision apply\n  gpuctl provision apply --yes -o json",
		Args:    wants(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withTerraform(cmd.Context(), "provision apply", func(p *provisioner, ctx context.Context) error { return p.change(ctx, false) })
		},
	}
}

func newProvisionDestroy(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "destroy",
		Short: "Give back everything that the root module has rented",
		Long: `destroy shows what goes, asks, and takes it away with all data on it. Nothing is
drained first: the whole cluster goes.`,
		Example: "  gpuctl provision destroy\n  gpuctl provision destroy --yes",
		Args:    wants(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withTerraform(cmd.Context(), "provision destroy", func(p *provisioner, ctx context.Context) error { return p.change(ctx, true) })
		},
	}
}

func newProvisionOutput(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "output",
		Short: "Show the machines that the root module lists, as gpuctl understands them",
		Long: `output reads the output of what was applied: the machines, entries that cannot be
used and why, and the names of other outputs. Values of other outputs stay hidden.`,
		Example: "  gpuctl provision output\n  gpuctl provision output -o json",
		Args:    wants(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withTerraform(cmd.Context(), "provision output", (*provisioner).output)
		},
	}
}

// provisioner is one command's work on a root module.
type provisioner struct {
	*app
	config    config.Config
	state     state.Dir
	terraform provision.Terraform
	progress  printer
	record    *state.Run
}

// withTerraform opens what provision needs: unlike a session it does not ask for
// machines that may not be there yet.
func (a *app) withTerraform(ctx context.Context, verb string, do func(*provisioner, context.Context) error) (err error) {
	if a.flags.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, a.flags.timeout, fmt.Errorf("the limit --timeout %s passed", a.flags.timeout))
		defer cancel()
	}
	p := &provisioner{app: a}
	if err := p.load(); err != nil {
		return err
	}
	if p.state, err = state.Open(p.config.Metadata.Name); err != nil {
		return err
	}
	lock, err := p.state.Lock("gpuctl " + verb)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	var redactor state.Redactor
	for _, s := range p.terraform.Secrets {
		redactor.Add(s)
	}
	if p.record, err = p.state.NewRun(time.Now(), &redactor); err != nil {
		return err
	}
	s := session{app: a, record: p.record}
	p.record.Emit(event.Event{Time: time.Now(), Kind: event.RunStarted, Text: verb})
	defer func() { err = errors.Join(err, s.endRecord(ctx, err)) }()
	p.progress = s.printer()
	defer p.progress.Close()
	p.terraform.Sink = stamped(event.Tee(p.progress, p.record))
	return do(p, ctx)
}

// load reads the file and fetches the variables.
func (p *provisioner) load() error {
	var err error
	if p.config, err = config.Load(p.flags.file); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return usagef("there is no %s here; gpuctl init --terraform DIR writes one, -f names another", p.flags.file)
		}
		return err
	}
	from := p.config.Spec.MachinesFrom
	if from == nil || from.Terraform == nil {
		return usagef("%s lists its machines itself; provision needs spec.machinesFrom.terraform", p.flags.file)
	}
	p.terraform = terraformOf(*from.Terraform)
	p.terraform.Variables, p.terraform.Secrets, err = from.Terraform.Values(config.Secret.Read)
	return err
}

// terraformOf is the root module of a file, to read its output.
func terraformOf(t config.Terraform) provision.Terraform {
	return provision.Terraform{Dir: t.Dir, Output: t.Output, Binary: t.Binary}
}

// planView is a plan for people and programs.
type planView struct {
	Cluster string `json:"cluster"`
	Dir     string `json:"dir"`
	// Changed is true also where only outputs change.
	Changed  bool                   `json:"changed"`
	Changes  []provision.Change     `json:"changes"`
	Summary  provision.Summary      `json:"summary"`
	Warnings []provision.Diagnostic `json:"warnings,omitempty"`
	// Machines is what becomes of machines, as far as the plan knows already.
	Machines []provision.Difference `json:"machines,omitempty"`
}

func (p *provisioner) view(made *provision.Planned) planView {
	v := planView{Cluster: p.config.Metadata.Name, Dir: p.terraform.Dir, Changed: made.Changed, Changes: made.Changes, Summary: made.Summary, Warnings: made.Warnings}
	if v.Changes == nil {
		v.Changes = []provision.Change{}
	}
	return v
}

// provisionHints are steps that help with Terraform.
func provisionHints(err error) []string {
	var run *provision.RunError
	var unasked *notAgreed
	switch {
	case errors.As(err, &unasked):
		return []string{"look at it with: gpuctl provision plan", "agree to it with: --yes"}
	case is[*provision.BinaryError](err):
		return []string{"install Terraform or OpenTofu, or name the program in spec.machinesFrom.terraform.binary"}
	case errors.As(err, &run) && run.Locked():
		return []string{"another run works on this state: wait for it", "if that run is dead: " + run.Program + " force-unlock ID in " + run.Dir}
	}
	return nil
}

// notAgreed is a plan of Terraform that nobody agreed to.
type notAgreed struct{ why string }

func (e *notAgreed) Error() string { return e.why + ": " + plan.ErrConsent.Error() }
func (e *notAgreed) Unwrap() error { return plan.ErrConsent }
