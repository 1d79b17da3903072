package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// newRoot builds the tree of commands.
func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "gpuctl",
		Short: "Turn rented GPU machines into a Kubernetes cluster with proven GPUs",
		Long: `gpuctl takes machines you can reach by SSH and makes a Kubernetes cluster of
them: it installs k3s, the NVIDIA Container Toolkit and the GPU Operator, joins
the nodes and proves every GPU before work is scheduled on it.

It looks at each machine before it changes anything, says exactly what it is
going to do, and can be run again at any time: what is right already stays.`,
		Example: `  gpuctl bootstrap ubuntu@203.0.113.10 ubuntu@203.0.113.11
  gpuctl plan
  gpuctl status`,
		SilenceUsage:               true,
		SilenceErrors:              true,
		Args:                       knownCommand,
		SuggestionsMinimumDistance: 2,
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	addGlobalFlags(root, a)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	root.PersistentPreRunE = func(*cobra.Command, []string) error { return a.checkFlags() }
	for _, g := range groups(a) {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title + ":"})
		for _, c := range g.commands {
			c.GroupID = g.title
		}
		root.AddCommand(g.commands...)
	}
	root.AddCommand(newSchema(a), newVersion(a), newDocs(a))
	return root
}

// group is a heading of the help, and what stands below it.
type group struct {
	title    string
	commands []*cobra.Command
}

// groups are in the order in which somebody with new machines needs them.
func groups(a *app) []group {
	return []group{
		{"From machines to a cluster", []*cobra.Command{
			newInit(a), newProvision(a), newBundle(a), newBootstrap(a), newCheck(a), newPlan(a), newApply(a), newReset(a),
		}},
		{"A cluster at work", []*cobra.Command{
			newStatus(a), newSmoke(a), newDoctor(a), newExplain(a), newGPU(a), newCost(a), newKubeconfig(a), newSSH(a), newTrust(a),
		}},
		{"Machines and versions that change", []*cobra.Command{
			newNode(a), newScale(a), newUpgrade(a), newEtcd(a), newCertificate(a), newToken(a),
		}},
	}
}

func addGlobalFlags(root *cobra.Command, a *app) {
	f := root.PersistentFlags()
	f.StringVarP(&a.flags.file, "file", "f", "gpuctl.yaml", "the cluster's `file`")
	f.StringSliceVar(&a.flags.nodes, "nodes", nil, "only these `machines`, by name")
	f.StringVarP(&a.flags.output, "output", "o", "text", "`format` of the result: text or json")
	f.DurationVar(&a.flags.timeout, "timeout", 0, "give up after this `time`, such as 45m; 0 means the limits of each step")
	f.BoolVarP(&a.flags.yes, "yes", "y", false, "agree to reboots, driver changes, drains and uninstalls of the plan")
	f.BoolVarP(&a.flags.verbose, "verbose", "v", false, "say more")
	f.BoolVar(&a.flags.acceptNewHostKeys, "accept-new-host-keys", false, "send the sudo password also to machines seen for the first time")
	f.BoolVar(&a.flags.noColor, "no-color", false, "no colours (also: NO_COLOR)")
}

func (a *app) checkFlags() error {
	if a.flags.output != "text" && a.flags.output != "json" {
		output := a.flags.output
		a.flags.output = "text"
		return usagef("--output %q is neither text nor json", output)
	}
	if a.flags.timeout < 0 {
		return usagef("--timeout %s is negative", a.flags.timeout)
	}
	return nil
}

// knownCommand refuses a word that is no command, with the nearest that is.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := ""
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = fmt.Sprintf("; did you mean %q?", near[0])
	}
	return usagef("unknown command %q%s", args[0], hint)
}

// wants turns the error of an argument check into a usage error.
func wants(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return &usageError{fmt.Errorf("%s: %w", cmd.CommandPath(), err)}
		}
		return nil
	}
}
