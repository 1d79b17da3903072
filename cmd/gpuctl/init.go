package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuctl/gpuctl/internal/config"
	"github.com/gpuctl/gpuctl/internal/providers"
	"github.com/gpuctl/gpuctl/internal/ui"
	"github.com/gpuctl/gpuctl/provision"
)

// initOptions are the flags of init.
type initOptions struct {
	hosts config.HostOptions
	// module is a root module to write into the Terraform directory first.
	module string
}

func newInit(a *app) *cobra.Command {
	var o initOptions
	cmd := &cobra.Command{
		Use:   "init [[user@]host[:port]...]",
		Short: "Write gpuctl.yaml and say what to verify before committing",
		Long: `init writes gpuctl.yaml for machines named on the command line (addresses, DNS names
or Hosts of your ssh_config), for those that a Terraform or OpenTofu directory lists,
or, on a terminal, for those that you name when asked. It connects to nothing and
never overwrites a file.

With --provider it fills in what is known of that place and prints what to verify
before committing. Providers: ` + strings.Join(providers.Names(), ", ") + `.`,
		Example: `  gpuctl init --provider lambda 203.0.113.10 203.0.113.11
  gpuctl init gpu-a gpu-b
  gpuctl init --terraform infra
  gpuctl init --terraform infra --module aws
  gpuctl init`,
		RunE: func(cmd *cobra.Command, args []string) error { return runInit(cmd.Context(), a, o, args) },
	}
	f := cmd.Flags()
	f.StringVar(&o.hosts.Provider, "provider", "", "where the machines are rented, a `name` of the list above")
	f.StringVar(&o.hosts.TerraformDir, "terraform", "", "take the machines from this root module, a `directory`")
	f.StringVar(&o.hosts.TerraformOutput, "terraform-output", "", "the `output` that lists them (default gpuctl)")
	f.StringVar(&o.module, "module", "", "write this root module into the directory first: "+strings.Join(provision.Modules(), ", "))
	f.IntVar(&o.hosts.GPUs, "gpus", 0, "the `number` of GPUs that each machine has by promise")
	f.StringVar(&o.hosts.Cluster, "name", "", "the cluster's `name` (default gpu)")
	f.StringVar(&o.hosts.Set, "set", "", "the tested `set` of versions (default the newest)")
	f.StringVar(&o.hosts.Jump, "jump", "", "`hosts` to jump through, [user@]host[:port], comma separated")
	f.StringVar(&o.hosts.IdentityFile, "identity-file", "", "private key `file`")
	return cmd
}

// initResult is what init wrote and what is left to look at.
type initResult struct {
	File string `json:"file"`
	// Module is the root module that was written, if any.
	Module   string              `json:"module,omitempty"`
	Provider *providers.Provider `json:"provider,omitempty"`
	// Checklist is what to verify before committing to a provider or a term.
	Checklist []providers.Item `json:"checklist"`
	Notes     []string         `json:"notes,omitempty"`
	Next      []string         `json:"next"`
}

func runInit(ctx context.Context, a *app, o initOptions, hosts []string) error {
	if err := a.freeToWrite(o); err != nil {
		return err
	}
	if len(hosts) == 0 && o.hosts.TerraformDir == "" {
		if !a.terminal.in {
			return usagef("name machines, or --terraform DIR; on a terminal gpuctl init asks")
		}
		var err error
		if hosts, err = a.askMachines(ctx, &o); err != nil {
			return err
		}
	}
	r := initResult{File: a.flags.file, Module: o.module}
	provider, err := providerOf(o.hosts.Provider)
	if err != nil {
		return err
	}
	if provider.Name != "" {
		r.Provider = &provider
	}
	data, err := config.FromHosts(hosts, o.hosts)
	if err != nil {
		return &usageError{err}
	}
	if o.module != "" {
		if err := provision.WriteModule(o.module, filepath.Join(filepath.Dir(a.flags.file), o.hosts.TerraformDir)); err != nil {
			return &usageError{err}
		}
	}
	if err := config.WriteNew(a.flags.file, data); err != nil {
		return err
	}
	r.Checklist = provider.Checklist()
	r.Notes = initNotes(o, hosts, provider)
	r.Next = a.afterInit(o)
	return a.show(r, func(out io.Writer) error { return initText(out, r) })
}

// freeToWrite refuses what cannot be done before anything is asked.
func (a *app) freeToWrite(o initOptions) error {
	switch {
	case o.module != "" && o.hosts.TerraformDir == "":
		return usagef("--module needs --terraform DIR, where it is written")
	case o.hosts.TerraformOutput != "" && o.hosts.TerraformDir == "":
		return usagef("--terraform-output belongs to --terraform")
	case o.hosts.GPUs < 0 || o.hosts.GPUs > 1024:
		return usagef("--gpus %d is no number of GPUs", o.hosts.GPUs)
	}
	if _, err := os.Stat(a.flags.file); err == nil {
		return usagef("%s is there already and stays as it is; -f names another file", a.flags.file)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// providerOf finds a provider; one where no cluster can be made is refused.
func providerOf(name string) (providers.Provider, error) {
	if name == "" {
		return providers.Provider{}, nil
	}
	p, known := providers.Find(name)
	switch {
	case !known:
		return p, usagef("--provider %q is not known; known are %s. Leave it out for others", name, strings.Join(providers.Names(), ", "))
	case p.Unfit != "":
		return p, usagef("%s", p.Unfit)
	}
	return p, nil
}

// initNotes are remarks on what was asked for.
func initNotes(o initOptions, hosts []string, p providers.Provider) []string {
	var notes []string
	if len(hosts) == 1 && o.hosts.GPUs <= 1 {
		notes = append(notes, "For one GPU and one job a cluster is more than you need: plain SSH, or Jupyter over an SSH tunnel, is simpler.")
	}
	if len(hosts) > 1 && p.RandomPorts {
		notes = append(notes, p.Title+" maps ports at random: several machines do not reach each other, and gpuctl will refuse to join them, unless each has an address of its own.")
	}
	if p.Name != "" && p.User == "" && o.hosts.TerraformDir == "" {
		notes = append(notes, "The first login depends on the image there: set spec.ssh.user where your ssh_config does not.")
	}
	if o.module != "" && o.module != "local" {
		notes = append(notes, "The module "+o.module+" was checked for form only: nobody has rented a machine with it. Read it, and look at the plan.")
	}
	return notes
}

func (a *app) afterInit(o initOptions) []string {
	if o.hosts.TerraformDir != "" {
		return []string{a.command("provision plan"), a.command("provision apply"), a.command("check"), a.command("apply")}
	}
	return []string{a.command("check"), a.command("apply")}
}

func initText(out io.Writer, r initResult) error {
	w := &writer{w: out}
	w.linef("wrote %s", r.File)
	w.gap()
	title := "Before you commit to a provider or a term, verify:"
	if r.Provider != nil {
		title = "Before you commit to " + r.Provider.Title + ", verify (what is known is of September 2026):"
	}
	w.linef("%s", title)
	for _, item := range r.Checklist {
		w.linef("  [ ] %-13s %s", item.Topic, item.Ask)
		if item.Known != "" {
			w.linef("      %-13s known: %s", "", item.Known)
		}
	}
	for _, n := range r.Notes {
		w.gap()
		w.linef("%s", ui.Clean(n))
	}
	w.gap()
	w.linef("next: %s", strings.Join(r.Next, ", then "))
	return w.err
}
