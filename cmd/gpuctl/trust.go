package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuctl/gpuctl/bootstrap/plan"
	"github.com/gpuctl/gpuctl/bootstrap/sshconn"
	"github.com/gpuctl/gpuctl/internal/ui"
)

func newTrust(a *app) *cobra.Command {
	var replace bool
	cmd := &cobra.Command{
		Use:   "trust",
		Short: "Take over a cluster on another computer: its id, host keys and kubeconfig",
		Long: `trust is for a colleague, or a second computer, with gpuctl.yaml and SSH access. It
connects to the server alone and takes from there what the last apply left: the
cluster's id, the host keys of all machines, so that none of them has to be trusted
anew, and the kubeconfig.

The server itself is trusted as any machine: by its hostKey in gpuctl.yaml, by your
own known_hosts, or at the first contact, when its fingerprint is printed; compare
it, or set spec.ssh.hostKeys: strict. A server of another cluster than this
computer knows under the name is refused.

Host keys that you know differently stay and are named (exit code 3); with
--replace those of the server take their place.`,
		Example: "  gpuctl trust\n  gpuctl trust --replace",
		Args:    wants(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(a.flags.nodes) > 0 {
				return usagef("trust takes over the whole cluster; --nodes has no place here")
			}
			return a.withSession(cmd.Context(), need{verb: "trust", lock: true, record: true, retryFor: briefly},
				func(ctx context.Context, s *session) error { return runTrust(ctx, s, replace) })
		},
	}
	cmd.Flags().BoolVar(&replace, "replace", false, "forget keys of these machines that differ from the server's")
	return cmd
}

// trustView is what was taken over.
type trustView struct {
	Cluster string `json:"cluster"`
	// ID tells the cluster from all others; empty where its machines bear none yet.
	ID       string        `json:"id,omitempty"`
	Machines []trustedView `json:"machines"`
	// Kubeconfig is where it was written.
	Kubeconfig string `json:"kubeconfig"`
}

// trustedView is a machine and its host key.
type trustedView struct {
	Name string `json:"name"`
	// Key is "new", "known", "replaced", "conflict", or "missing" where the server does not have it.
	Key string `json:"key"`
}

func runTrust(ctx context.Context, s *session, replace bool) error {
	r, err := s.engine.Trust(ctx)
	if err != nil {
		return err
	}
	v := trustView{Cluster: r.Cluster, ID: r.ID, Machines: []trustedView{}, Kubeconfig: s.state.Kubeconfig()}
	var conflicts []string
	for _, m := range s.inventory.Machines {
		t := trustedView{Name: m.Name, Key: "missing"}
		if line := r.KnownHosts[m.Name]; line != "" {
			learned, err := sshconn.LearnKey(s.state.KnownHosts(), line, replace)
			if err != nil {
				return fmt.Errorf("the host key of %s as the server has it: %w", m.Name, err)
			}
			t.Key = string(learned)
		}
		if t.Key == string(sshconn.LearnedConflict) {
			conflicts = append(conflicts, m.Name)
		}
		v.Machines = append(v.Machines, t)
	}
	if err := s.state.WriteKubeconfig(r.Kubeconfig); err != nil {
		return err
	}
	var refused error
	if len(conflicts) > 0 {
		refused = fmt.Errorf("the server has other host keys than this computer for %s; if these machines were rebuilt: %s: %w",
			strings.Join(conflicts, ", "), s.command("trust --replace"), plan.ErrConsent)
	}
	return s.finish(v, refused, func(out io.Writer) error { return s.trustText(out, v) })
}

func (s *session) trustText(out io.Writer, v trustView) error {
	w := &writer{w: out}
	id := v.ID
	if id == "" {
		id = "none yet; the next apply gives it one"
	}
	w.linef("cluster %s, id %s", v.Cluster, ui.Clean(id))
	rows := [][]string{{"MACHINE", "HOST KEY"}}
	for _, m := range v.Machines {
		rows = append(rows, []string{m.Name, m.Key})
	}
	w.do(ui.Table(w, rows))
	w.linef("kubeconfig: %s", v.Kubeconfig)
	return w.err
}
