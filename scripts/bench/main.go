//go:build unix

// Command bench measures gpuctl's runs without changes on simulated fleets,
// each beside its floor, and prints a table; build/bench.json keeps it. Run it
// by make from the repository's root. The farm of machines and each client run
// in processes of their own, so that a client's CPU and memory are its own;
// they share the computer all the same, and a busy one spoils the times.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == "farm" {
		return runFarm(ctx, args[1:])
	}
	if len(args) > 0 && args[0] == "client" {
		return runClient(ctx, args[1:])
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	quick := flags.Bool("quick", false, "small fleets, in under two minutes")
	machines := flags.String("machines", "", "sizes of the fleets, comma separated, instead of the usual")
	repeats := flags.Int("repeat", 0, "tries of each, the best counts; 0 means the usual")
	roundTrip := flags.Duration("rtt", 50*time.Millisecond, "round trip to each machine")
	gpuctl := flags.String("gpuctl", "bin/gpuctl", "the binary whose start is timed; empty times none")
	out := flags.String("out", "build/bench.json", "where the figures go")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Minute)
	defer cancel()
	fleets, repeat := []int{1, 10, 50, 100, 500, 1000}, 5
	if *quick {
		fleets, repeat = []int{1, 10, 50}, 3
	}
	if *machines != "" {
		fleets = nil
		for _, word := range strings.Split(*machines, ",") {
			n, err := strconv.Atoi(word)
			if err != nil || n < 1 {
				return fmt.Errorf("-machines: %q is no number of machines", word)
			}
			fleets = append(fleets, n)
		}
	}
	if *repeats > 0 {
		repeat = *repeats
	}
	var t table
	t.load("before")
	for _, n := range fleets {
		if err := t.fleet(ctx, n, *roundTrip, repeat); err != nil {
			return fmt.Errorf("%d machines: %w", n, err)
		}
	}
	t.growth(fleets)
	if *gpuctl != "" {
		if err := t.startUp(ctx, *gpuctl); err != nil {
			return err
		}
	}
	t.load("after")
	return t.write(*out)
}

// print is how a child answers.
func print(v any) error { return json.NewEncoder(os.Stdout).Encode(v) }
