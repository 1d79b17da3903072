package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuctl/gpuctl/internal/config"
)

// nodeAddOptions are the flags of node add.
type nodeAddOptions struct {
	applyOptions
	like config.Machine
	gpus int
}

func newNodeAdd(a *app) *cobra.Command {
	var o nodeAddOptions
	cmd := &cobra.Command{
		Use:   "add [user@]host[:port]...",
		Short: "Add machines to gpuctl.yaml and to the running cluster",
		Long: `add writes the machines into gpuctl.yaml, joins them while the cluster works,
proves their GPUs and opens them to work. Comments and order of the file stay.
The file is changed only when every host is well formed and every name is free.

What fails afterwards is repaired by gpuctl apply, or by the same command again.`,
		Example: `  gpuctl node add ubuntu@203.0.113.12
  gpuctl node add ubuntu@203.0.113.12 --name gpu-4 --gpus 8 --group h100
  gpuctl node add gpu-a gpu-b gpu-c --yes
  gpuctl node add --role server cp-2 cp-3`,
		Args: wants(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(a.flags.nodes) > 0 {
				return usagef("node commands take the machines as arguments, not by --nodes")
			}
			if o.like.Role != "agent" && o.like.Role != "server" {
				return usagef("--role %q is neither agent nor server", o.like.Role)
			}
			if cmd.Flags().Changed("gpus") {
				o.like.GPUs = &o.gpus
			}
			n := need{verb: "node add", lock: true, record: true, retryFor: patience,
				edit: func(s *session) error { return s.addMachines(args, o.like) }}
			return a.withSession(cmd.Context(), n, func(ctx context.Context, s *session) error { return runApply(ctx, s, o.applyOptions) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.like.Name, "name", "", "the node's `name` (one machine only; default from the host)")
	f.StringVar(&o.like.Role, "role", "agent", "agent, or server for the control plane: then two at once, so that their number stays odd")
	f.StringVar(&o.like.Group, "group", "", "the `group` of gpuctl.yaml whose settings apply")
	f.IntVar(&o.gpus, "gpus", 0, "the `number` of GPUs that were promised; fewer stop the machine before any change")
	f.StringVar(&o.like.GPUModel, "gpu-model", "", "a part of the promised model's `name`")
	f.StringVar(&o.like.Jump, "jump", "", "`hosts` to jump through, [user@]host[:port], comma separated")
	f.StringVar(&o.like.IdentityFile, "identity-file", "", "private key `file`")
	f.StringVar(&o.like.PrivateAddress, "private-address", "", "the `address` that the other machines use")
	f.StringVar(&o.like.DataDir, "data-dir", "", "where k3s keeps its data, a `directory` on the machine")
	o.addFlags(cmd)
	addBundle(cmd, a)
	return cmd
}

// addMachines writes the machines into the file and keeps the run to them.
func (s *session) addMachines(hosts []string, like config.Machine) error {
	machines, err := s.config.NewMachines(hosts, like)
	if err != nil {
		return &usageError{err}
	}
	changed, err := config.Rewrite(s.flags.file, func(data []byte) ([]byte, error) {
		return config.AddMachines(data, s.flags.file, machines...)
	})
	if errors.Is(err, config.ErrMachinesElsewhere) {
		return usagef("adding machines to %s: %w", s.flags.file, err)
	}
	if err != nil {
		return err
	}
	s.flags.nodes = nil
	for _, m := range machines {
		s.flags.nodes = append(s.flags.nodes, m.Name)
	}
	if changed {
		_, err = fmt.Fprintf(s.err, "added %s to %s\n", strings.Join(s.flags.nodes, ", "), s.flags.file)
	}
	return err
}
