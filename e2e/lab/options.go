// Package lab brings up the machines that gpuctl is tested on: containers that
// behave like rented GPU machines, and a mirror of what they download. See
// README.md for what is real in it and what stands in.
package lab

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// K3sVersion is the version the lab's k3s stand-in is built and served as.
const K3sVersion = "v1.34.4+k3s1"

// Options say what a lab consists of. The zero value is the whole lab.
type Options struct {
	// ID tells labs on one host apart; "lab" if empty. Letters, digits, dash.
	ID string
	// Bare leaves out k3s and all of NVIDIA's parts: machines and an empty
	// mirror. It needs no build besides the machine image.
	Bare bool
	// NoGPU leaves out NVIDIA's packages, images and charts.
	NoGPU bool
	// Out takes a line for each finished step with its time; nil for none.
	Out io.Writer
}

func (o Options) withDefaults() (Options, error) {
	if o.ID == "" {
		o.ID = "lab"
	}
	if !regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,20}$`).MatchString(o.ID) {
		return o, fmt.Errorf("lab id %q: want up to 21 lower-case letters, digits and dashes", o.ID)
	}
	if o.Out == nil {
		o.Out = io.Discard
	}
	return o, nil
}

// flags are the options of the command lab that say the same.
func (o Options) flags() string {
	switch {
	case o.Bare:
		return "--bare"
	case o.NoGPU:
		return "--no-gpu"
	}
	return ""
}

// stateDir is where engines and labs keep their state: $GPUCTL_LAB_STATE, else
// $XDG_STATE_HOME/gpuctl-lab, else ~/.local/state/gpuctl-lab.
func stateDir() (string, error) {
	dir := os.Getenv("GPUCTL_LAB_STATE")
	if dir == "" {
		base := os.Getenv("XDG_STATE_HOME")
		if base == "" {
			home, err := os.UserHomeDir()
			if err != nil {
				return "", fmt.Errorf("finding the lab's state: %w", err)
			}
			base = filepath.Join(home, ".local", "state")
		}
		dir = filepath.Join(base, "gpuctl-lab")
	}
	return filepath.Abs(dir)
}

// sourceDir finds the root of the e2e module, which the recipes build from, by
// going up from the working directory.
func sourceDir() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the lab's sources: %w", err)
	}
	for ; ; dir = filepath.Dir(dir) {
		for _, at := range []string{dir, filepath.Join(dir, "e2e")} {
			mod, err := os.ReadFile(filepath.Join(at, "go.mod"))
			if err == nil && strings.HasPrefix(string(mod), "module github.com/gpuctl/gpuctl/e2e\n") {
				return at, nil
			}
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("finding the lab's sources: the working directory is not in a checkout of gpuctl")
		}
	}
}
