//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/gpuctl/gpuctl/internal/bench"
)

// farmInfo is what a farm says of itself, by one line when it listens and one for each line it gets.
type farmInfo struct {
	Ports   []int        `json:"ports"`
	HostKey string       `json:"hostKey"`
	Counts  bench.Counts `json:"counts"`
	// Server and Other are what the first and the last machine were sent, for the floor.
	Server [][]byte `json:"server"`
	Other  [][]byte `json:"other"`
}

// runFarm is the process of the machines. It ends with its standard input.
func runFarm(_ context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("farm", flag.ContinueOnError)
	n := flags.Int("machines", 1, "")
	roundTrip := flags.Duration("rtt", 0, "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	f, err := bench.StartFarm(bench.FarmOptions{Machines: *n, RoundTrip: *roundTrip})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info := farmInfo{Ports: f.Ports, HostKey: f.HostKey}
	if err := print(info); err != nil {
		return err
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		info.Counts, info.Server, info.Other = f.Counts(), f.Scripts(0), f.Scripts(*n-1)
		if err := print(info); err != nil {
			return err
		}
	}
	return nil
}

// job is what a client is told on standard input.
type job struct {
	What string
	Site bench.Site
	// SSHConfig is "none" where the system's ssh is not asked.
	SSHConfig string
	Farm      farmInfo
}

func runClient(ctx context.Context, _ []string) error {
	var j job
	if err := json.NewDecoder(os.Stdin).Decode(&j); err != nil {
		return err
	}
	var cost bench.Cost
	var err error
	if j.What == "floor" {
		cost, err = bench.Floor(ctx, j.Site, j.Farm.Ports, j.Farm.HostKey, j.Farm.Server, j.Farm.Other)
	} else {
		cost, err = bench.Run(ctx, j.What, j.Site, j.SSHConfig)
	}
	if err != nil {
		return err
	}
	return print(cost)
}

// farm is a farm's process as seen from here.
type farm struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *json.Decoder
	info farmInfo
	site bench.Site
	dir  string
}

func startFarm(ctx context.Context, n int, roundTrip time.Duration) (*farm, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	f := &farm{cmd: exec.CommandContext(ctx, self, "farm", "-machines", fmt.Sprint(n), "-rtt", roundTrip.String())}
	f.cmd.Stderr = os.Stderr
	if f.in, err = f.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := f.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := f.cmd.Start(); err != nil {
		return nil, err
	}
	f.out = json.NewDecoder(out)
	if err := f.out.Decode(&f.info); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the farm: %w", err), f.stop())
	}
	if f.dir, err = os.MkdirTemp("", "gpuctl-bench-"); err != nil {
		return nil, errors.Join(err, f.stop())
	}
	f.site, err = bench.NewSite(f.dir, f.info.Ports, f.info.HostKey)
	return f, err
}

// ask brings the farm's counts up to date.
func (f *farm) ask() error {
	if _, err := io.WriteString(f.in, "\n"); err != nil {
		return err
	}
	f.info = farmInfo{}
	return f.out.Decode(&f.info)
}

func (f *farm) stop() error {
	err := errors.Join(f.in.Close(), f.cmd.Wait())
	if f.dir != "" {
		err = errors.Join(err, os.RemoveAll(f.dir))
	}
	return err
}

// client runs one job in a process of its own, without the user's agent and settings.
func (f *farm) client(ctx context.Context, what, sshConfig string) (bench.Cost, error) {
	self, err := os.Executable()
	if err != nil {
		return bench.Cost{}, err
	}
	cmd := exec.CommandContext(ctx, self, "client")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(f.dir, "home")}
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return bench.Cost{}, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return bench.Cost{}, err
	}
	if err := cmd.Start(); err != nil {
		return bench.Cost{}, err
	}
	err = errors.Join(json.NewEncoder(in).Encode(job{What: what, Site: f.site, SSHConfig: sshConfig, Farm: f.info}), in.Close())
	var cost bench.Cost
	if err == nil {
		err = json.NewDecoder(out).Decode(&cost)
	}
	return cost, errors.Join(err, cmd.Wait())
}
