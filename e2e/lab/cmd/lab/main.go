// Command lab brings the lab up for work by hand.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/gpuctl/gpuctl/e2e/lab"
)

const usage = `lab runs small machines that gpuctl is tested on.

  lab up [--machines N] [--gpu MODEL:COUNT]   bring the lab up (again: find it)
  lab status                                  machines, addresses, sources
  lab machine add NAME [flags]                start a machine (-h for flags)
  lab machine remove|reboot|kill|start NAME
  lab shell [USER@]NAME [COMMAND...]          log in; USER is ubuntu if absent
  lab prepare                                 build what is not cached, no more
  lab down [--engine]                         remove machines, networks, mirror

All commands take --id, for several labs side by side. Run from the checkout.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		fmt.Fprint(out, usage)
		return nil
	}
	name, args := args[0], args[1:]
	switch name {
	case "up":
		return up(ctx, args, out)
	case "prepare":
		set, o := flags("prepare")
		if err := set.Parse(args); err != nil {
			return err
		}
		o.Out = out
		return lab.Prepare(ctx, *o)
	case "down":
		return down(ctx, args, out)
	case "status":
		return status(ctx, args, out)
	case "machine":
		return machineCommand(ctx, args, out)
	case "shell":
		return shell(ctx, args)
	case "help", "-h", "--help":
		fmt.Fprint(out, usage)
		return nil
	}
	return fmt.Errorf("unknown command %q; see lab help", name)
}

// flags are those of every command.
func flags(name string) (*flag.FlagSet, *lab.Options) {
	set := flag.NewFlagSet("lab "+name, flag.ContinueOnError)
	o := &lab.Options{}
	set.StringVar(&o.ID, "id", "lab", "which lab")
	set.BoolVar(&o.Bare, "bare", false, "only machines and an empty mirror")
	set.BoolVar(&o.NoGPU, "no-gpu", false, "without NVIDIA's packages, images and charts")
	return set, o
}
