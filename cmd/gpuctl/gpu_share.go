package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuctl/gpuctl/bootstrap"
	"github.com/gpuctl/gpuctl/internal/config"
	"github.com/gpuctl/gpuctl/internal/sharing"
	"github.com/gpuctl/gpuctl/internal/ui"
)

// shareOptions are the flags of gpu share set.
type shareOptions struct {
	group       string
	timeSlicing int
	mps         int
	mig         string
	strategy    string
	rename      bool
	onlyOne     bool
}

func newGPUShare(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "share",
		Short:   "Let several pods use one GPU",
		Example: "  gpuctl gpu share show\n  gpuctl gpu share set --group h100 --time-slicing 4",
		Args:    knownCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newShareSet(a), newShareClear(a), newShareShow(a))
	return cmd
}

func newShareSet(a *app) *cobra.Command {
	var o shareOptions
	cmd := &cobra.Command{
		Use:   "set --group NAME --time-slicing N",
		Short: "Share the GPUs of a group and prove it",
		Long: `set writes groups[].sharing of gpuctl.yaml and changes the nodes of the group: the
device plugin reads its new configuration, labels and allocatable are verified,
and pods run side by side on every GPU while one more has to wait. Whatever else
is pending stays so; gpuctl plan shows it.

Time-slicing isolates neither memory nor faults. MPS bounds memory and threads of
a pod; a fatal fault still ends the others. Pods that hold GPUs keep them.

MIG cuts the cards that have it into slices with memory and engines of their own:
a profile (as many as fit), balanced (NVIDIA's mix), or counts for each GPU. Pods
that hold GPUs of the node leave it first; on A100 and A30 the machine may have to
be rebooted. Both are asked before.`,
		Example: `  gpuctl gpu share set --group h100 --time-slicing 4
  gpuctl gpu share set --group h100 --time-slicing 4 --rename
  gpuctl gpu share set --group l4 --mps 10
  gpuctl gpu share set --group h100 --mig 1g.10gb
  gpuctl gpu share set --group h100 --mig "1g.10gb:3 4g.40gb:1"
  gpuctl gpu share set --group h100 --mig balanced --strategy mixed`,
		Args: wants(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			spec, err := o.spec()
			if err != nil {
				return err
			}
			return a.share(cmd.Context(), "gpu share set", o.group, spec)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.group, "group", "", "the `group` of gpuctl.yaml")
	f.IntVar(&o.timeSlicing, "time-slicing", 0, "this `number` of pods take turns on each GPU")
	f.IntVar(&o.mps, "mps", 0, "this `number` of pods compute on each GPU at the same time")
	f.StringVar(&o.mig, "mig", "", "cut each GPU into slices: a `profile`, balanced, or counts (\"1g.10gb:3 4g.40gb:1\")")
	f.StringVar(&o.strategy, "strategy", "", "offer slices as nvidia.com/gpu (`single`) or as nvidia.com/mig-PROFILE (mixed)")
	f.BoolVar(&o.rename, "rename", false, "offer the shares as nvidia.com/gpu.shared; nvidia.com/gpu is gone then")
	f.BoolVar(&o.onlyOne, "only-one", false, "refuse pods that ask for more than one share (time-slicing)")
	return cmd
}

// spec is what the flags ask for.
func (o shareOptions) spec() (sharing.Spec, error) {
	s := sharing.Spec{Kind: sharing.TimeSlicing, Replicas: o.timeSlicing, Rename: o.rename, OnlyOne: o.onlyOne}
	if o.mps != 0 {
		s.Kind, s.Replicas = sharing.MPS, o.mps
	}
	given := 0
	for _, asked := range []bool{o.timeSlicing != 0, o.mps != 0, o.mig != ""} {
		if asked {
			given++
		}
	}
	switch {
	case o.group == "":
		return s, usagef("--group is missing: sharing belongs to a group of gpuctl.yaml")
	case given != 1:
		return s, usagef("give one of --time-slicing, --mps and --mig")
	case o.strategy != "" && o.mig == "":
		return s, usagef("--strategy is for --mig")
	case o.mig != "" && (o.rename || o.onlyOne):
		return s, usagef("--rename and --only-one are not for --mig")
	case o.mig != "":
		return o.slices()
	}
	if why := s.Refuse(nil); len(why) > 0 {
		return s, usagef("%s", why[0])
	}
	return s, nil
}

// slices is what --mig and --strategy ask for.
func (o shareOptions) slices() (sharing.Spec, error) {
	layout := strings.TrimPrefix(o.mig, "all-")
	if counted, ok := sharing.ParseSlices(layout); ok {
		layout = counted.String()
	}
	spec, err := config.SlicesOf(layout, o.strategy)
	if err != nil {
		return spec, usagef("--mig: %s", err)
	}
	return spec, nil
}

func newShareClear(a *app) *cobra.Command {
	group := ""
	cmd := &cobra.Command{
		Use:     "clear --group NAME",
		Short:   "Give pods whole GPUs again",
		Long:    "clear takes groups[].sharing out of gpuctl.yaml and brings the nodes of the group back to whole GPUs.",
		Example: "  gpuctl gpu share clear --group h100",
		Args:    wants(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if group == "" {
				return usagef("--group is missing: sharing belongs to a group of gpuctl.yaml")
			}
			return a.share(cmd.Context(), "gpu share clear", group, sharing.Spec{})
		},
	}
	cmd.Flags().StringVar(&group, "group", "", "the `group` of gpuctl.yaml")
	return cmd
}

// share writes the file, then makes the cluster follow.
func (a *app) share(ctx context.Context, verb, group string, spec sharing.Spec) error {
	changed, err := config.Rewrite(a.flags.file, func(data []byte) ([]byte, error) {
		return config.SetSharing(data, a.flags.file, group, spec)
	})
	if err != nil {
		return &usageError{err}
	}
	if changed {
		if _, err := fmt.Fprintf(a.err, "%s: group %s is now %s\n", a.flags.file, group, spec); err != nil {
			return err
		}
	}
	return a.withSession(ctx, need{verb: verb, lock: true, record: true, retryFor: patience}, func(ctx context.Context, s *session) error {
		result, err := s.engine.Apply(ctx, bootstrap.ApplyOptions{Confirm: s.confirm(), SharingOnly: true})
		if err != nil && result.Cluster == "" {
			return err
		}
		return s.finish(result, err, func(w io.Writer) error { return s.applyText(w, result, err) })
	})
}

func newShareShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "show",
		Short:   "Show how each node shares its GPUs, and how it should",
		Example: "  gpuctl gpu share show\n  gpuctl gpu share show -o json",
		Args:    wants(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withSession(cmd.Context(), need{verb: "gpu share show", retryFor: briefly}, runShareShow)
		},
	}
}

// shareView is one node in gpu share show. Its JSON is a promise.
type shareView struct {
	Node   string `json:"node"`
	Group  string `json:"group,omitempty"`
	Wanted string `json:"wanted"`
	Now    string `json:"now"`
	// Resource is what pods ask for; GPUs counts GPUs, Allocatable and InUse count Resource.
	Resource    string `json:"resource"`
	GPUs        int64  `json:"gpus"`
	Allocatable int64  `json:"allocatable"`
	InUse       int64  `json:"inUse"`
}

func runShareShow(ctx context.Context, s *session) error {
	status, err := s.engine.Status(ctx)
	if err != nil {
		return err
	}
	views := []shareView{}
	for _, n := range status.Nodes {
		machine, _ := s.inventory.Find(n.Name)
		spec := s.config.Group(machine.Group).Spec()
		if n.GPUs == 0 && spec.Kind == sharing.Whole {
			continue
		}
		v := shareView{Node: n.Name, Group: machine.Group, Wanted: spec.String(), Now: sharing.Spec{}.String(), Resource: sharing.GPU,
			GPUs: n.GPUs, Allocatable: n.Allocatable, InUse: n.InUse}
		if n.Sharing != "" {
			v.Now, v.Resource = n.Sharing, n.Resource
		}
		views = append(views, v)
	}
	return s.finish(views, nil, func(w io.Writer) error { return shareText(w, views) })
}

func shareText(out io.Writer, views []shareView) error {
	rows := [][]string{{"NODE", "GROUP", "WANTED", "NOW", "PODS ASK FOR", "GPUS", "ALLOCATABLE", "IN USE"}}
	for _, v := range views {
		rows = append(rows, []string{v.Node, dash(v.Group), v.Wanted, ui.Clean(v.Now), v.Resource, fmt.Sprint(v.GPUs), fmt.Sprint(v.Allocatable), fmt.Sprint(v.InUse)})
	}
	return ui.Table(out, rows)
}
