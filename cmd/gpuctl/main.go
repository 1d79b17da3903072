// Command gpuctl turns rented GPU machines that can be reached by SSH into a
// Kubernetes cluster whose GPUs are proven to work.
package main

import (
	"context"
	"os"

	"golang.org/x/term"
)

func main() {
	os.Exit(run(os.Args[1:], app{
		in: os.Stdin, out: os.Stdout, err: os.Stderr,
		terminal: terminals{
			in:  term.IsTerminal(int(os.Stdin.Fd())),
			out: term.IsTerminal(int(os.Stdout.Fd())),
			err: term.IsTerminal(int(os.Stderr.Fd())) && os.Getenv("TERM") != "dumb",
		},
		size:         terminalSize,
		readPassword: readPassword,
		newEngine:    newEngine,
	}))
}

// run executes one command line and returns the exit code.
func run(args []string, a app) int {
	ctx, stop := withInterrupt(context.Background())
	defer stop()
	root := newRoot(&a)
	root.SetArgs(args)
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	err := root.ExecuteContext(ctx)
	if err != nil {
		err = explainEnd(ctx, err)
		a.printError(err)
	}
	return exitCode(err)
}
