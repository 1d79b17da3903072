// Package smi prints what nvidia-smi prints on a simulated machine, or in a
// container on it. Formats follow recorded outputs of drivers 550 to 610; exit
// codes follow nvidia-smi(1), section RETURN VALUE.
package smi

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/e2e/lab/gpu/scenario"
)

// Exit codes of nvidia-smi(1).
const (
	exitInvalid   = 2
	exitNotFound  = 6
	exitNoDriver  = 9
	exitNoLibrary = 12
	exitLost      = 15
	exitMismatch  = 18
)

// World is what the command sees: a root directory and its output.
type World struct {
	Root           string // "/" on a machine and in a container
	Stdout, Stderr io.Writer
	Now            func() time.Time
	// Hang is called when the scenario says that nvidia-smi never returns.
	Hang func()
	// SetMIG changes the MIG mode of the machine's GPUs; nil where that cannot be.
	SetMIG func(on bool) error
}

// device is a GPU with the index it has here; in a container the first
// visible device is index 0, whatever its minor number.
type device struct {
	scenario.GPU
	index, minor int
	lost         bool
}

type session struct {
	World
	scenario.Scenario
	devices []device
}

// Library finds the simulated library below root as the loader would.
func Library(root string) (scenario.Scenario, error) {
	for _, dir := range []string{"usr/lib/x86_64-linux-gnu", "usr/lib64", "usr/lib"} {
		path := filepath.Join(root, dir, "libnvidia-ml.so.1")
		if _, err := os.Stat(path); err == nil {
			return scenario.ReadLibrary(path)
		}
	}
	return scenario.Scenario{}, os.ErrNotExist
}

// Visible says which minor numbers have a device node below root.
func Visible(root string, s scenario.Scenario) []int {
	var out []int
	for i := range s.GPUs {
		if _, err := os.Stat(filepath.Join(root, "dev", "nvidia"+strconv.Itoa(i))); err == nil {
			out = append(out, i)
		}
	}
	return out
}

// Run is the command; the result is its exit code.
func Run(w World, args []string) int {
	s := session{World: w}
	var err error
	if s.Scenario, err = Library(w.Root); err != nil {
		if !errors.Is(err, os.ErrNotExist) {
			fmt.Fprintln(w.Stdout, err)
		}
		fmt.Fprint(w.Stdout, "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. "+
			"Please make sure that the NVIDIA Display Driver is properly installed and present in your system.\n"+
			"Please also try adding directory that contains libnvidia-ml.so to your system PATH.\n")
		return exitNoLibrary
	}
	if s.Faults.Hang {
		w.Hang()
	}
	if _, err := os.Stat(filepath.Join(w.Root, "dev", "nvidiactl")); err != nil {
		fmt.Fprint(w.Stdout, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "+
			"Make sure that the latest NVIDIA driver is installed and running.\n\n")
		return exitNoDriver
	}
	if s.Library() != s.Driver {
		fmt.Fprintf(w.Stdout, "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: %s\n\n",
			majorMinor(s.Library()))
		return exitMismatch
	}
	for index, minor := range Visible(w.Root, s.Scenario) {
		d := device{GPU: s.GPUs[minor], index: index, minor: minor}
		for _, l := range s.Faults.Lost {
			d.lost = d.lost || l == minor
		}
		s.devices = append(s.devices, d)
	}
	return s.dispatch(args)
}

func (s session) dispatch(args []string) int {
	o, err := parse(args)
	if err != nil {
		fmt.Fprintln(s.Stdout, err)
		return exitInvalid
	}
	if len(s.devices) == 0 {
		fmt.Fprintln(s.Stdout, "No devices were found")
		return exitNotFound
	}
	code := s.reportLost()
	picked, err := s.pick(o.id)
	if err != nil {
		fmt.Fprintln(s.Stdout, err)
		return exitNotFound
	}
	switch {
	case o.list:
		s.list(picked)
	case o.queryGPU != "":
		if c := s.queryGPU(picked, o); c != 0 {
			return c
		}
	case o.queryApps != "":
		s.queryApps(o)
	case o.full:
		s.full(picked)
	case o.topo:
		s.topo(picked)
	case o.mig != "" && s.SetMIG != nil:
		return s.setMIG(picked, o.mig == "1")
	case o.set:
		fmt.Fprintln(s.Stdout, "All done.")
	default:
		s.table(picked)
	}
	return code
}

// setMIG changes the mode; what became of it stands in the library afterwards.
func (s session) setMIG(picked []device, on bool) int {
	if err := s.SetMIG(on); err != nil {
		fmt.Fprintln(s.Stdout, err)
		return exitInvalid
	}
	now, err := Library(s.Root)
	if err != nil {
		fmt.Fprintln(s.Stdout, err)
		return exitNoLibrary
	}
	for _, d := range picked {
		mig := now.GPUs[d.minor].MIG
		switch {
		case mig == nil:
			fmt.Fprintf(s.Stdout, "Unable to set MIG Mode for GPU %s: Not Supported\n", d.busID())
		case mig.Current != mig.Pending:
			fmt.Fprintf(s.Stdout, "Warning: MIG mode is in pending %s state for GPU %s:In use by another client\n", map[bool]string{true: "enable", false: "disable"}[on], d.busID())
		default:
			fmt.Fprintf(s.Stdout, "%s MIG Mode for GPU %s\n", mig.Current, d.busID())
		}
	}
	fmt.Fprintln(s.Stdout, "All done.")
	return 0
}

// Slices are the MIG devices of a GPU whose device nodes are below root.
func Slices(root string, g scenario.GPU, minor int) []scenario.Slice {
	var out []scenario.Slice
	if g.MIG == nil {
		return nil
	}
	for _, slice := range g.MIG.Slices {
		gi, _ := slice.Caps(minor)
		if _, err := os.Stat(filepath.Join(root, "dev/nvidia-caps", "nvidia-cap"+strconv.Itoa(gi))); err == nil {
			out = append(out, slice)
		}
	}
	return out
}

// reportLost prints the line that stands before the output when a card has
// fallen off the bus.
func (s session) reportLost() int {
	for _, d := range s.devices {
		if d.lost {
			fmt.Fprintf(s.Stdout, "Unable to determine the device handle for GPU%d: %s: Unknown Error\n",
				d.index, strings.ToUpper(d.Bus))
			return exitLost
		}
	}
	return 0
}

func (s session) pick(id string) ([]device, error) {
	var out []device
	for _, d := range s.devices {
		if d.lost {
			continue
		}
		if id == "" || matches(d, id) {
			out = append(out, d)
		}
	}
	if id != "" && len(out) == 0 {
		return nil, errors.New("No devices were found") //nolint:staticcheck // the command's own words
	}
	return out, nil
}

func matches(d device, id string) bool {
	for _, part := range strings.Split(id, ",") {
		if part == strconv.Itoa(d.index) || part == d.UUID || strings.EqualFold(part, d.busID()) ||
			strings.EqualFold(part, d.Bus) {
			return true
		}
	}
	return false
}

// busID is the address with the eight-digit domain nvidia-smi prints.
func (d device) busID() string { return "0000" + strings.ToUpper(d.Bus) }

func majorMinor(version string) string {
	parts := strings.SplitN(version, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}
