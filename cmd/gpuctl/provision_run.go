package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/gpuctl/gpuctl/internal/inventory"
	"github.com/gpuctl/gpuctl/internal/ui"
	"github.com/gpuctl/gpuctl/provision"
)

// plan shows a plan and throws it away.
func (p *provisioner) plan(ctx context.Context) (err error) {
	made, err := p.terraform.Plan(ctx, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, made.Close()) }()
	v := p.view(made)
	if v.Machines, err = p.machinesOf(ctx, made); err != nil {
		return err
	}
	return p.done(v, func(w *writer) { p.planText(w, v) })
}

// machinesOf says what a plan does to machines, as far as it knows.
func (p *provisioner) machinesOf(ctx context.Context, made *provision.Planned) ([]provision.Difference, error) {
	if !made.Changed {
		return nil, nil
	}
	after, known, err := made.Outputs(ctx)
	if err != nil || !known {
		return nil, err
	}
	before, err := p.terraform.Find(ctx)
	if err != nil {
		before = provision.Found{} // nothing was applied yet, or it lists no machine
	}
	return provision.Compare(before.Machines, after.Machines), nil
}

// provisionResult is what an apply or a destroy came to.
type provisionResult struct {
	planView
	// Done counts what was done to resources.
	Done provision.Summary `json:"done"`
	// Inventory are the machines now, Differences what changed in it.
	Inventory   []rentedView           `json:"inventory"`
	Skipped     []provision.Skipped    `json:"skipped,omitempty"`
	Differences []provision.Difference `json:"differences,omitempty"`
}

// change plans, asks and applies.
func (p *provisioner) change(ctx context.Context, destroy bool) (err error) {
	before, findErr := p.terraform.Find(ctx)
	if ctx.Err() != nil {
		return findErr
	}
	made, err := p.terraform.Plan(ctx, destroy)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, made.Close()) }()
	r := provisionResult{planView: p.view(made), Inventory: []rentedView{}}
	if destroy {
		r.Machines = provision.Compare(before.Machines, nil)
	} else if r.Machines, err = p.machinesOf(ctx, made); err != nil {
		return err
	}
	if made.Changed {
		if err := p.agree(ctx, r.planView, destroy); err != nil {
			return err
		}
		if r.Done, err = made.Apply(ctx); err != nil {
			return err
		}
	}
	return p.after(ctx, before, destroy, r)
}

// after reads the inventory again, keeps it and says what changed.
func (p *provisioner) after(ctx context.Context, before provision.Found, destroy bool, r provisionResult) error {
	var now provision.Found
	if !destroy {
		var err error
		if now, err = p.terraform.Find(ctx); err != nil {
			return err
		}
	}
	r.Skipped, r.Differences = now.Skipped, provision.Compare(before.Machines, now.Machines)
	for _, m := range now.Machines {
		r.Inventory = append(r.Inventory, rentedOf(m))
	}
	return p.done(r, func(w *writer) {
		if !r.Changed {
			w.linef("%s: nothing to do", p.terraform.Dir)
		} else {
			w.linef("%s: %d added, %d changed, %d destroyed", p.terraform.Dir, r.Done.Add, r.Done.Change, r.Done.Remove)
		}
		differencesText(w, r.Differences)
		skippedText(w, r.Skipped)
		if len(r.Inventory) > 0 {
			w.linef("%d machines; next: %s", len(r.Inventory), p.command("apply"))
		}
	})
}

// agree shows the plan on standard error and asks.
func (p *provisioner) agree(ctx context.Context, v planView, destroy bool) error {
	p.progress.Close() // the live view goes before a question comes
	w := &writer{w: p.err}
	p.planText(w, v)
	if w.err != nil || p.flags.yes {
		return w.err
	}
	if !p.terminal.in {
		return &notAgreed{"the plan of " + p.terraform.Dir}
	}
	question := "This changes what you pay for. Go on? [y/N] "
	if destroy {
		question = "All of it goes, with the data on it. Go on? [y/N] "
	}
	if _, err := fmt.Fprint(p.err, question); err != nil {
		return err
	}
	answer, err := readLine(ctx, bufio.NewReader(p.in))
	if err != nil {
		return err
	}
	if !agreed(answer) {
		return &notAgreed{"you said no"}
	}
	return nil
}

// outputView is what the root module lists.
type outputView struct {
	Cluster  string              `json:"cluster"`
	Dir      string              `json:"dir"`
	Output   string              `json:"output"`
	Machines []rentedView        `json:"machines"`
	Skipped  []provision.Skipped `json:"skipped,omitempty"`
	Others   []provision.Other   `json:"others,omitempty"`
}

// rentedView is a machine as an output lists it.
type rentedView struct {
	Name           string `json:"name"`
	Role           string `json:"role,omitempty"`
	Group          string `json:"group,omitempty"`
	Host           string `json:"host"`
	Port           int    `json:"port,omitempty"`
	User           string `json:"user,omitempty"`
	PrivateAddress string `json:"privateAddress,omitempty"`
	Jump           string `json:"jump,omitempty"`
	HostKey        string `json:"hostKey,omitempty"`
	GPUs           *int   `json:"gpus,omitempty"`
	GPUModel       string `json:"gpuModel,omitempty"`
}

func rentedOf(m inventory.Machine) rentedView {
	return rentedView{Name: m.Name, Role: string(m.Role), Group: m.Group, Host: m.Host, Port: m.Port, User: m.User,
		PrivateAddress: m.PrivateAddress, Jump: m.Jump, HostKey: m.HostKey, GPUs: m.GPUs, GPUModel: m.GPUModel}
}

func (p *provisioner) output(ctx context.Context) error {
	found, err := p.terraform.Find(ctx)
	if err != nil {
		return err
	}
	v := outputView{Cluster: p.config.Metadata.Name, Dir: p.terraform.Dir, Output: p.terraform.Output, Machines: []rentedView{}, Skipped: found.Skipped, Others: found.Others}
	rows := [][]string{{"NAME", "ROLE", "GROUP", "HOST", "PORT", "USER", "PRIVATE", "HOST KEY", "GPUS"}}
	for _, m := range found.Machines {
		v.Machines = append(v.Machines, rentedOf(m))
		port, key, gpus := "", "", ""
		if m.Port != 0 {
			port = strconv.Itoa(m.Port)
		}
		if m.HostKey != "" {
			key = "pinned"
		}
		if m.GPUs != nil {
			gpus = strconv.Itoa(*m.GPUs)
		}
		row := []string{m.Name, string(m.Role), m.Group, m.Host, port, m.User, m.PrivateAddress, key, gpus}
		for i := range row {
			row[i] = dash(ui.Clean(row[i]))
		}
		rows = append(rows, row)
	}
	return p.done(v, func(w *writer) {
		w.do(ui.Table(w, rows))
		skippedText(w, v.Skipped)
		for _, o := range v.Others {
			sensitive := ""
			if o.Sensitive {
				sensitive = " (sensitive)"
			}
			w.linef("another output: %s%s", o.Name, sensitive)
		}
	})
}

// done shows a result and keeps it in the record.
func (p *provisioner) done(v any, text func(*writer)) error {
	p.progress.Close()
	return errors.Join(p.record.WriteReport(v), p.show(v, func(out io.Writer) error {
		w := &writer{w: out}
		text(w)
		return w.err
	}))
}

func (p *provisioner) planText(w *writer, v planView) {
	if !v.Changed {
		w.linef("%s: nothing to do", v.Dir)
	} else {
		w.linef("%s: %d to add, %d to change, %d to destroy", v.Dir, v.Summary.Add, v.Summary.Change, v.Summary.Remove)
	}
	for _, c := range v.Changes {
		reason := ""
		if c.Reason != "" {
			reason = "  (" + c.Reason + ")"
		}
		w.linef("  %-8s %s%s", c.Action, ui.Clean(c.Address), reason)
	}
	differencesText(w, v.Machines)
	for _, d := range v.Warnings {
		w.linef("  %s: %s", d.Severity, ui.Clean(d.String()))
	}
}

func differencesText(w *writer, all []provision.Difference) {
	for _, d := range all {
		w.linef("machine %s: %s (%s)", ui.Clean(d.Name), d.Kind, ui.Clean(d.Text))
	}
}

func skippedText(w *writer, all []provision.Skipped) {
	for _, s := range all {
		w.linef("%s is left out: %s", ui.Clean(s.Name), ui.Clean(s.Reason))
	}
}
