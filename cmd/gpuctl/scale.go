package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuctl/gpuctl/bootstrap"
	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/internal/config"
	"github.com/gpuctl/gpuctl/internal/inventory"
	"github.com/gpuctl/gpuctl/provision"
)

// scaling is one run of scale.
type scaling struct {
	group    string
	to       int
	variable string
	drain    drainFlags
	// grown: there are machines to join.
	grown bool
}

func newScale(a *app) *cobra.Command {
	c := scaling{to: -1}
	cmd := &cobra.Command{
		Use:   "scale GROUP --to N",
		Short: "Rent or give back machines of a group that Terraform owns",
		Long: `scale sets the group's terraformVariable, shows what Terraform would do, and asks.
Machines that go are drained and taken out of the cluster first; where that fails
nothing is given back. Machines that come are joined and proven. Zero is a valid
number: the control plane stays.

Which machines go is what the root module says: with count the last ones. scale
names them before it asks. The variable is kept in gpuctl.yaml.`,
		Example: "  gpuctl scale gpu --to 4\n  gpuctl scale gpu --to 0 --yes",
		Args:    wants(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if c.group = args[0]; c.to < 0 || c.to > 1024 {
				return usagef("say how many machines: --to 0 to --to 1024")
			}
			return a.withSession(cmd.Context(), need{verb: "scale", lock: true, record: true, retryFor: briefly, then: c.join}, c.run)
		},
	}
	cmd.Flags().IntVar(&c.to, "to", -1, "the `number` of machines")
	c.drain.add(cmd)
	return cmd
}

// join makes nodes of the machines that came.
func (c *scaling) join() (need, func(context.Context, *session) error) {
	if !c.grown {
		return need{}, nil
	}
	return need{verb: "apply", record: true, retryFor: patience},
		func(ctx context.Context, s *session) error { return runApply(ctx, s, applyOptions{}) }
}

// scaleResult is what became of a group.
type scaleResult struct {
	Cluster  string `json:"cluster"`
	Group    string `json:"group"`
	To       int    `json:"to"`
	Variable string `json:"variable"`
	// Changed is false where the group has that many machines already.
	Changed bool              `json:"changed"`
	Done    provision.Summary `json:"done"`
	// Differences is what became of machines.
	Differences []provision.Difference `json:"differences"`
}

func (c *scaling) run(ctx context.Context, s *session) (err error) {
	p, text, err := c.prepare(s)
	if err != nil {
		return err
	}
	made, err := p.terraform.Plan(ctx, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, made.Close()) }()
	r := scaleResult{Cluster: s.config.Metadata.Name, Group: c.group, To: c.to, Variable: c.variable, Changed: made.Changed, Differences: []provision.Difference{}}
	if made.Changed {
		if err := c.change(ctx, s, p, made, text, &r); err != nil {
			return err
		}
	} else if err := c.keep(s, text); err != nil {
		return err
	}
	c.grown = slices.ContainsFunc(r.Differences, func(d provision.Difference) bool { return d.Kind != "gone" })
	if c.grown {
		w := &writer{w: s.err}
		c.text(w, r)
		return errors.Join(w.err, s.record.WriteReport(r)) // the result on standard output is that of the join
	}
	return s.finish(r, nil, func(out io.Writer) error {
		w := &writer{w: out}
		c.text(w, r)
		return w.err
	})
}

// prepare finds the group's variable and makes a root module with its new value.
// text is gpuctl.yaml as it will be.
func (c *scaling) prepare(s *session) (*provisioner, []byte, error) {
	from := s.config.Spec.MachinesFrom
	if from == nil || from.Terraform == nil {
		return nil, nil, usagef("%s lists its machines itself; add one with gpuctl node add, remove one with gpuctl node remove", s.flags.file)
	}
	i := slices.IndexFunc(s.config.Spec.Groups, func(g config.Group) bool { return g.Name == c.group })
	if i < 0 {
		return nil, nil, usagef("there is no group %q in %s", c.group, s.flags.file)
	}
	if c.variable = s.config.Spec.Groups[i].TerraformVariable; c.variable == "" {
		return nil, nil, usagef("the group %s has no terraformVariable: say which variable counts its machines", c.group)
	}
	data, err := os.ReadFile(s.flags.file)
	if err != nil {
		return nil, nil, err
	}
	text, err := config.SetVariable(data, s.flags.file, c.variable, c.to)
	if err != nil {
		return nil, nil, &usageError{err}
	}
	p := &provisioner{app: s.app, config: s.config, state: s.state, terraform: terraformOf(*from.Terraform), progress: s.progress, record: s.record}
	values, secrets, err := from.Terraform.Values(config.Secret.Read)
	if err != nil {
		return nil, nil, err
	}
	values[c.variable] = c.to
	p.terraform.Variables, p.terraform.Secrets, p.terraform.Sink = values, secrets, s.sink
	return p, text, nil
}

// change shows and asks, empties what goes, keeps the number and applies.
func (c *scaling) change(ctx context.Context, s *session, p *provisioner, made *provision.Planned, text []byte, r *scaleResult) error {
	v := p.view(made)
	after, known, err := made.Outputs(ctx)
	if err != nil {
		return err
	}
	before := s.inventory.Machines
	if known {
		v.Machines = named(before, after)
	}
	going := gone(v.Machines)
	if made.Summary.Remove > 0 && len(going) == 0 {
		return fmt.Errorf("the plan takes something away, and which machines is not known before: see gpuctl provision plan, then gpuctl node remove and gpuctl provision apply: %w", plan.ErrConsent)
	}
	if err := p.agree(ctx, v, false); err != nil {
		return err
	}
	if err := c.empty(ctx, s, going); err != nil {
		return err
	}
	if err := c.keep(s, text); err != nil {
		return err
	}
	if r.Done, err = made.Apply(ctx); err != nil {
		return err
	}
	now, err := p.terraform.Find(ctx)
	if err != nil {
		return err
	}
	r.Differences = named(before, now)
	return nil
}

// named compares the inventory with what an output lists, by name alone: the
// inventory has defaults filled in.
func named(before []inventory.Machine, after provision.Found) []provision.Difference {
	var all []provision.Difference
	for _, d := range provision.Compare(before, after.Machines) {
		if d.Kind != "changed" || strings.Contains(d.Text, "address") {
			all = append(all, d)
		}
	}
	return all
}

func gone(all []provision.Difference) []string {
	var names []string
	for _, d := range all {
		if d.Kind == "gone" {
			names = append(names, d.Name)
		}
	}
	return names
}

// empty takes machines out of the cluster. One that is no node has nothing to lose.
func (c *scaling) empty(ctx context.Context, s *session, names []string) error {
	if len(names) == 0 {
		return nil
	}
	drain, err := c.drain.options()
	if err != nil {
		return err
	}
	nodes, err := s.engine.ListNodes(ctx)
	if err != nil {
		return fmt.Errorf("looking which machines are nodes: %w", err)
	}
	var joined []string
	for _, n := range nodes.Nodes {
		if n.Joined && slices.Contains(names, n.Name) {
			joined = append(joined, n.Name)
		}
	}
	if len(joined) == 0 {
		return nil
	}
	removed, err := s.engine.RemoveNodes(ctx, bootstrap.RemoveOptions{Nodes: joined, Drain: drain})
	if err != nil {
		return fmt.Errorf("nothing is given back: %w", err)
	}
	if len(removed.Removed) != len(joined) {
		return fmt.Errorf("nothing is given back: of %s only %s left the cluster", strings.Join(joined, ", "), strings.Join(removed.Removed, ", "))
	}
	return nil
}

// keep writes the number into gpuctl.yaml.
func (c *scaling) keep(s *session, text []byte) error {
	_, err := config.Rewrite(s.flags.file, func([]byte) ([]byte, error) { return text, nil })
	return err
}

func (c *scaling) text(w *writer, r scaleResult) {
	if !r.Changed {
		w.linef("%s has %d machines already: nothing to do", r.Group, r.To)
		return
	}
	w.linef("%s: %d added, %d changed, %d destroyed; %s is %d now", r.Group, r.Done.Add, r.Done.Change, r.Done.Remove, r.Variable, r.To)
	differencesText(w, r.Differences)
}
