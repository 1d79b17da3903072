// Command test runs the repository's test suites one after another, each under
// its own limit and all under one deadline, and ends with the line
// "N passed, N failed". Run it by make from the repository's root.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// total bounds a run, totalFull one with -full.
const (
	total     = 55 * time.Minute
	totalFull = 4 * time.Hour
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout))
}

func run(ctx context.Context, args []string, out io.Writer) int {
	flags := flag.NewFlagSet("test", flag.ContinueOnError)
	only := flags.String("only", "", "comma-separated suites; empty means all that are not only in -full")
	full := flags.Bool("full", false, "also what takes long")
	list := flags.Bool("list", false, "list the suites")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	chosen, err := choose(suites(), *only, *full)
	if err != nil {
		fmt.Fprintln(out, err)
		return 2
	}
	if *list {
		for _, s := range chosen {
			fmt.Fprintf(out, "%-10s %s\n", s.name, s.limit)
		}
		return 0
	}
	limit := total
	if *full {
		limit = totalFull
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return runAll(ctx, chosen, filepath.Join("build", "test"), out)
}

func choose(all []suite, only string, full bool) ([]suite, error) {
	var out []suite
	if only == "" {
		for _, s := range all {
			if full || !s.full {
				out = append(out, s)
			}
		}
		return out, nil
	}
	for _, name := range strings.Split(only, ",") {
		found := false
		for _, s := range all {
			if s.name == name {
				out, found = append(out, s), true
			}
		}
		if !found {
			return nil, fmt.Errorf("there is no suite %q", name)
		}
	}
	return out, nil
}

// runAll runs the suites in order and returns the exit code. What does not run
// because the deadline has passed counts as failed.
func runAll(ctx context.Context, chosen []suite, logs string, out io.Writer) int {
	if err := os.MkdirAll(logs, 0o755); err != nil {
		fmt.Fprintln(out, err)
		return 1
	}
	passed, failed := 0, 0
	for _, s := range chosen {
		r := s.run(ctx, filepath.Join(logs, s.name+".log"))
		passed, failed = passed+r.passed, failed+r.failed
		fmt.Fprintln(out, r.line(s.name))
		for _, note := range r.notes {
			fmt.Fprintln(out, "  "+note)
		}
		for _, f := range r.failures {
			fmt.Fprintln(out, "  "+strings.ReplaceAll(f, "\n", "\n  "))
		}
	}
	fmt.Fprintf(out, "%d passed, %d failed\n", passed, failed)
	if failed > 0 || passed == 0 {
		return 1
	}
	return 0
}
